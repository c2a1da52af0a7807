/**
 * A process that guards itself like a server. Arguments: the state folder, the grace period and folders. Prints a line once it has looked.
 * Once its input has ended, exits with 42 if it isn't ended during some more looks.
 */
import { guardServer } from "../../../src/plugin/guard-server.ts";

const [stateFolder = "", grace, ...directories] = process.argv.slice(2);
const GRACE_MS = Number(grace);
process.stdin.resume().once("end", () => setTimeout(() => process.exit(42), 10 * GRACE_MS));
await Promise.all(directories.map((directory) => guardServer(stateFolder, GRACE_MS, directory)));
console.log("guarded");
