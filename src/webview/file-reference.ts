/** Endings by which a name without a folder or line is taken for a file; `console.log` and `list.length` are none. */
const FILE_TYPES = new Set(
  (
    "bat c cc cjs clj cpp cs css csv cts cxx dart ex go gradle graphql h hpp htm html hs ini java jl js json jsonc jsx kt " +
    "less lock lua m md mdx mjs mm mts php pl proto ps1 py r rb rs sass scala scss sh sql svelte svg swift tf toml ts " +
    "tsx txt vue xml yaml yml zig"
  ).split(" "),
);

const PATH =
  /^(?<drive>[A-Za-z]:[\\/])?(?<folders>(?:[\w@.+~()[\]-]*[\\/])*)[\w@.+~()[\]-]*\.(?<type>[A-Za-z]\w{0,9})(?<place>:\d{1,7}(?:[:-]\d{1,7})?|#L\d{1,7}(?:-L?\d{1,7})?)?$/;
const LONGEST = 400;

/** Whether a piece of code looks like the path of a file, perhaps with a line. Whether there is one is not asked here. */
export function looksLikeFile(code: string): boolean {
  if (code.length > LONGEST) return false;
  const groups = PATH.exec(code)?.groups;
  if (!groups) return false;
  return (
    Boolean(groups["folders"] || groups["place"]) || FILE_TYPES.has((groups["type"] ?? "").toLowerCase())
  );
}
