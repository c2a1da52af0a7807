/** Loads the parts of the window that aren't needed when it opens. */
export const loadLater = () => import("./later.ts");
