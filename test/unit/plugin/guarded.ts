/**
 * A process that guards itself like a server. Arguments: the state folder and folders. Prints a line once it has looked,
 * and exits with 42 if it isn't ended.
 */
import { guardServer } from "../../../src/plugin/guard-server.ts";

const [stateFolder = "", ...directories] = process.argv.slice(2);
const GRACE_MS = 100;
for (const directory of directories) guardServer(stateFolder, GRACE_MS, directory);
setTimeout(() => console.log("guarded"), 4 * GRACE_MS);
setTimeout(() => process.exit(42), 20 * GRACE_MS);
