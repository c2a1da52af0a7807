/** Whether names that differ only by case are those of one file, as on Windows and macOS by default. */
export const IGNORES_CASE = process.platform === "win32" || process.platform === "darwin";
