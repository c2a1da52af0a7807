/** Texts as in conversations, each some thousand characters long, without repeated lines. */

const subjects = [
  "The server",
  "A window",
  "This function",
  "The second caller",
  "Its test",
  "The old record",
];
const verbs = ["reads", "doesn't keep", "rewrites", "should've closed", "waits for", "no longer reports"];
const objects = [
  "the configuration",
  "an empty list",
  "what was cached",
  "every open socket",
  "the first error",
];

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function pick<T>(from: readonly T[], index: number): T {
  return from[index % from.length] as T;
}

function sentence(index: number): string {
  return `${pick(subjects, index)} ${pick(verbs, index * 5 + 1)} ${pick(objects, index * 7 + 2)}.`;
}

const markdown = times(40, (index) =>
  [
    `## ${index + 1}. ${pick(objects, index)}`,
    "",
    `${sentence(index)} ${sentence(index + 3)} See [the notes](https://example.org/notes/${index * 37}).`,
    "",
    `- **${pick(verbs, index)}**: \`value-${index}\` → ${index * 1.5} %`,
    "  - [ ] nested",
    "",
    "| Name | Value |",
    "|------|------:|",
    `| row ${index} | ${index ** 3} |`,
    "-".repeat(80),
  ].join("\n"),
).join("\n\n");

const code = times(40, (index) =>
  [
    `export async function readItem${index}(path: string, retries = ${index}): Promise<Item | undefined> {`,
    `\tconst raw = await fs.readFile(join(path, \`item-\${retries}.json\`), "utf8");`,
    `\tif (raw.length === 0 && retries > 0) return readItem${index}(path, retries - 1);`,
    `    // ${sentence(index)}`,
    `    return JSON.parse(raw) as Item; /* 0x${(index * 4_099).toString(16)} */`,
    "}",
  ].join("\r\n"),
).join("\r\n\r\n");

const json = JSON.stringify(
  times(60, (index) => ({
    id: `msg_${(index * 7_919).toString(36).padStart(12, "0")}`,
    ok: index % 3 === 0,
    ratio: index / 7,
    text: sentence(index),
    path: `/src/part-${index}/file_${index}.ts`,
  })),
  undefined,
  2,
);

const chineseSubjects = ["服务器", "这个窗口", "旧的记录", "第二个调用者", "测试程序"];
const chineseVerbs = ["读取", "没有保存", "正在等待", "重新写入", "已经关闭"];
const chineseObjects = ["配置文件", "一个空列表", "缓存的内容", "所有打开的连接", "第一个错误"];

const chinese = times(120, (index) => {
  const clause = (at: number): string =>
    `${pick(chineseSubjects, at)}${pick(chineseVerbs, at * 3 + 1)}${pick(chineseObjects, at * 7 + 2)}`;
  return `${clause(index)}，因为${clause(index + 2)}；所以${clause(index + 4)}。`;
}).join("");

/** Written without spaces, so that a whole sentence is one run. */
const thai = times(20, (index) => `ระบบจะอ่านแฟ้มการตั้งค่าใหม่ทุกครั้งที่หน้าต่างถูกเปิดขึ้นมาอีกครั้งหนึ่ง${index}`).join(" ");

const minified = times(120, (index) => {
  const name = `${String.fromCharCode(97 + (index % 26))}${index}`;
  return `var ${name}=function(e,t){return e&&t?${index}:void 0!==e.k${index}?e["x-${index}"]||{}:!1};`;
}).join("");

export const ordinary = {
  markdown,
  code,
  json,
  chinese,
  thai,
  minified,
};

/** Pseudorandom letters, the same ones each time. */
export function letters(length: number, seed = 1): string {
  let state = seed;
  const units = times(length, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return 97 + (Math.floor(state / 65_536) % 26);
  });
  return units.map((unit) => String.fromCharCode(unit)).join("");
}

/** Pseudorandom bytes in base64. */
export function base64(length: number): string {
  return Buffer.from(letters(length), "latin1").toString("base64").slice(0, length);
}
