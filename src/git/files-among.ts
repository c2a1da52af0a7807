/** What is in a folder. */
type ListFolder = (folder: string) => Promise<readonly { readonly name: Buffer; isDirectory(): boolean }[]>;

/**
 * Which of these paths are files, by what their folders list. A disk that ignores case also finds a file under another
 * name, and any disk finds those behind a link; Git would take in the one twice, and refuses the other. Paths are in
 * Latin-1, which keeps every byte.
 */
export async function filesAmong(paths: readonly string[], list: ListFolder): Promise<string[]> {
  const folders = new Map<string, Promise<ReadonlyMap<string, boolean>>>();
  /** Undefined if there is nothing. */
  const isFolder = async (path: string): Promise<boolean | undefined> => {
    const at = path.lastIndexOf("/");
    const entries = await entriesOf(path.slice(0, Math.max(at, 0)));
    return entries.get(comparable(Buffer.from(path.slice(at + 1), "latin1")));
  };
  const read = async (folder: string): Promise<ReadonlyMap<string, boolean>> => {
    const entries = folder === "" || (await isFolder(folder)) ? await list(folder) : [];
    return new Map(entries.map((entry) => [comparable(entry.name), entry.isDirectory()]));
  };
  const entriesOf = (folder: string): Promise<ReadonlyMap<string, boolean>> => {
    const known = folders.get(folder) ?? read(folder);
    folders.set(folder, known);
    return known;
  };
  const found = await Promise.all(paths.map(isFolder));
  return paths.filter((_, index) => found[index] === false);
}

/** macOS may list a name with other characters than Git, though they look the same. */
function comparable(name: Buffer): string {
  return name.toString().normalize("NFC");
}
