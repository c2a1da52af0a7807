/**
 * A path as users know it: relative to the folder if it is inside. Outside a Git repository, the server names files
 * relative to the root of the file system: `home/me/shop/src/cart.js`. For a folder directly below the root, such a path
 * could as well mean a folder of the same name in a repository, and stays as it is.
 */
export function relativePath(path: string, folder: string | undefined): string {
  if (folder === undefined) return path;
  const fromRoot = folder.replace(/^(?:[A-Za-z]:)?[\\/](?=.*[\\/])/, "");
  const outer = [folder, fromRoot].find(
    (prefix) => prefix !== "" && path.startsWith(prefix) && /^[\\/]./.test(path.slice(prefix.length)),
  );
  return outer === undefined ? path : path.slice(outer.length + 1);
}
