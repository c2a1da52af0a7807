/* The code that every window needs for its folders, in a separate chunk that is loaded after the window has opened. */

export { folderOpener } from "./folder.ts";
export { DaemonClient } from "./rpc/daemon-client.ts";
export { followSavedFiles } from "./ui/folders/saved-files.ts";
export { offerOwnDatabase } from "./ui/server-warnings.ts";
export { warnOfUntestedVersions } from "./ui/server-warnings.ts";
