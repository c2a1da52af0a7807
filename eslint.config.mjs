import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

/**
 * The parts of `src`, and what each may import besides itself: other parts, and packages. Whatever is not
 * named here is refused, so a new dependency is a decision taken in this table.
 */
const PARTS = {
  engine: { parts: [], packages: [] },
  protocol: { parts: ["engine"], packages: [] },
  state: { parts: [], packages: ["node:"] },
  opencode: { parts: ["engine", "state"], packages: ["node:", "@opencode-ai/sdk", "jsonc-parser", "zod"] },
  git: { parts: ["engine"], packages: ["node:"] },
  tokens: { parts: ["engine"], packages: ["node:", "js-tiktoken"] },
  tools: { parts: ["engine"], packages: ["zod"] },
  bridge: { parts: ["engine", "state", "tools"], packages: ["node:", "zod"] },
  plugin: { parts: ["bridge", "opencode", "rpc", "state", "tools"], packages: ["node:", "zod"] },
  rpc: { parts: ["engine", "protocol", "state"], packages: ["node:", "vscode-jsonrpc", "zod"] },
  /** Joins what works on folders into a process of its own. */
  daemon: {
    parts: ["bridge", "engine", "git", "opencode", "protocol", "rpc", "state", "tokens", "tools"],
    packages: ["node:", "diff", "zod"],
  },
  ui: { parts: ["engine", "protocol", "rpc", "tools"], packages: ["node:", "vscode"] },
  webview: { parts: ["protocol"], packages: ["markdown-it", "dompurify", "@speed-highlight/core"] },
};

/** The composition roots join all parts, and no part imports them. */
const ROOTS = ["extension.ts", "folder.ts", "window.ts"];

const escape = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** A regular expression that matches the import specifiers that the part must not use. */
function forbiddenImports(name) {
  const { parts, packages } = PARTS[name];
  const others = Object.keys(PARTS).filter((part) => part !== name && !parts.includes(part));
  const otherParts = `(?:\\.\\.\\/)+(?:${[...others, ...ROOTS, "test"].map(escape).join("|")})(?:\\/|$)`;
  const allowed = packages.map((id) => (id.endsWith(":") ? escape(id) : `${escape(id)}(?:\\/|$)`));
  const otherPackages = `(?!${["\\.{1,2}\\/", ...allowed].join("|")})`;
  return `^(?:${otherParts}|${otherPackages})`;
}

function describeImports(name) {
  const { parts, packages } = PARTS[name];
  const allowed = [...parts, ...packages].join(", ") || "nothing";
  return `src/${name} may import, besides itself: ${allowed}. See PARTS in eslint.config.mjs.`;
}

/** Syntax that no file of `src` may use, wherever it stands. */
const BANNED_SYNTAX = [
  {
    selector: "ExportDefaultDeclaration, ExportSpecifier[exported.name='default']",
    message: "Export by name: one name for one thing, everywhere.",
  },
  {
    // Translations are found by what stands in the source.
    selector:
      "CallExpression[callee.property.name='t'][arguments.0.type!='Literal']:matches([callee.object.name='l10n'], [callee.object.property.name='l10n'])",
    message: "Give l10n.t a literal; what varies goes into {0}, {1}, …",
  },
  {
    selector: "CallExpression[callee.name='sentence'][arguments.0.type!='Literal']",
    message: "Give sentence a literal; what varies goes into {0}, {1}, …",
  },
  {
    selector: "NewExpression[callee.name='Refusal'] > CallExpression[callee.property.name='t']",
    message: "Give a Refusal a sentence: its message is for programs, and English.",
  },
];

const REGISTER_COMMAND = {
  selector: "CallExpression[callee.property.name=/^register(TextEditor)?Command$/]",
  message: "Register commands in src/ui/commands, where each one gets its error handling.",
};

const SET_CONTEXT = {
  selector: "CallExpression[callee.property.name='executeCommand'][arguments.0.value='setContext']",
  message: "Set context keys through src/ui/context-keys.ts.",
};

/**
 * `no-restricted-imports` does not see `import("…")`, neither as an expression nor as a type; ESLint takes only
 * one setting of `no-restricted-syntax` per file, so all bans of a part are put together here.
 */
function restrictSyntax(name, bans, common = BANNED_SYNTAX) {
  // A selector's regular expression ends at the first slash, escaped or not.
  const pattern = forbiddenImports(name).replaceAll("\\/", "\\u002F");
  const message = describeImports(name);
  return [
    "error",
    ...common,
    ...bans,
    { selector: `ImportExpression[source.value=/${pattern}/]`, message },
    { selector: `TSImportType[source.value=/${pattern}/]`, message },
  ];
}

const partRules = Object.keys(PARTS).map((name) => ({
  name: `imports of src/${name}`,
  files: [`src/${name}/**/*.ts`],
  rules: {
    "no-restricted-imports": [
      "error",
      { patterns: [{ regex: forbiddenImports(name), message: describeImports(name) }] },
    ],
    "no-restricted-syntax": restrictSyntax(name, [REGISTER_COMMAND, SET_CONTEXT]),
  },
}));

export default defineConfig(
  globalIgnores(["dist/", "out/", "test-results/", ".vscode-test/"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    files: ["**/*.{js,mjs}"],
    languageOptions: {
      globals: {
        AbortSignal: "readonly",
        Buffer: "readonly",
        clearTimeout: "readonly",
        console: "readonly",
        fetch: "readonly",
        process: "readonly",
        setTimeout: "readonly",
        URL: "readonly",
      },
    },
  },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "separate-type-imports" }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      // An async function without await is how a synchronous answer fits an asynchronous interface.
      "@typescript-eslint/require-await": "off",
    },
  },
  {
    files: ["src/**/*.ts"],
    rules: {
      "no-console": "error",
      "no-eval": "error",
      "no-restricted-syntax": ["error", ...BANNED_SYNTAX, REGISTER_COMMAND, SET_CONTEXT],
    },
  },
  partRules,
  {
    files: ["src/ui/commands.ts", "src/ui/commands/**/*.ts"],
    rules: { "no-restricted-syntax": restrictSyntax("ui", [SET_CONTEXT]) },
  },
  {
    files: ["src/ui/context-keys.ts"],
    rules: { "no-restricted-syntax": restrictSyntax("ui", [REGISTER_COMMAND]) },
  },
  {
    // OpenCode takes a plugin from its module's default export.
    files: ["src/plugin/main.ts"],
    rules: { "no-restricted-syntax": restrictSyntax("plugin", [REGISTER_COMMAND, SET_CONTEXT], []) },
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      // Tests read answers of other programs, where `any` is what there is.
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      "@typescript-eslint/unbound-method": "off",
    },
  },
);
