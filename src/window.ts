/* What every window works on folders with, in a chunk of its own: it is loaded once the window has opened. */

export { folderOpener } from "./folder.ts";
export { findOpenCode } from "./opencode/locate.ts";
export { DaemonClient } from "./rpc/daemon-client.ts";
