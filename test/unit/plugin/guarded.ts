/** A process that guards itself like a server. Arguments: the state folder and a folder. Exits with 42 if it isn't ended. */
import { guardServer } from "../../../src/plugin/guard-server.ts";

const [stateFolder = "", directory = ""] = process.argv.slice(2);
const GRACE_MS = 100;
guardServer(stateFolder, GRACE_MS, directory);
setTimeout(() => process.exit(42), 20 * GRACE_MS);
