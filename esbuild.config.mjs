import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Script } from "node:vm";
import { transform } from "@swc/core";
import { context, build } from "esbuild";
import { privateNames } from "./build/private-names.mjs";

const production = process.argv.includes("--production");
const watch = process.argv.includes("--watch");

const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  // The licenses of all packages are shipped in a file of their own.
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};

/** What `src/rpc` uses of vscode-jsonrpc, in place of these files: its entries bring along all that it can do. */
const jsonRpcEntries = {
  "node/main.js": `
    import RAL from "../common/ral.js";
    export { createMessageConnection } from "../common/connection.js";
    export { CancellationTokenSource } from "../common/cancellation.js";
    export { ErrorCodes, ResponseError } from "../common/messages.js";
    const after = (callback, ms) => {
      const timer = setTimeout(callback, ms);
      return { dispose: () => clearTimeout(timer) };
    };
    RAL.install({ console, timer: { setImmediate, setTimeout: after } });`,
  "common/linkedMap.js": `
    export class LinkedMap extends Map {
      shift() {
        const [[key, value] = []] = this;
        this.delete(key);
        return value;
      }
    }`,
};

/**
 * Turns what TypeScript wrote as CommonJS back into an ES module, of which only what is used gets into a bundle. Also
 * leaves out TypeScript's helpers for CommonJS, which every file repeats.
 */
function asModule(code) {
  return code
    .replace(/^var __\w+ = [^]*?^\}.*;$/gm, "")
    .replace(/^Object\.defineProperty\(exports, "__esModule".*$/gm, "")
    .replace(/^(exports\.\w+ = )+void 0;$/gm, "")
    .replace(/^exports\.(\w+) = \1;$/gm, "export { $1 };")
    .replace(/^exports\.default = /gm, "export default ")
    .replace(/^exports\.(\w+) = /gm, "export const $1 = ")
    .replace(
      /^var (\w+);\n(\(function \(\1\) \{[^]*?)^\}\)\(\1 \|\| \(exports\.\1 = \1 = \{\}\)\);$/gm,
      "export var $1 = /* @__PURE__ */ $2return $1;\n})({});",
    )
    .replace(/^const (\w+) = (?:__\w+\()?require\("(\.[^"]+)"\)\)?;$/gm, 'import * as $1 from "$2.js";')
    .replace(/^const (\w+) = (?:__\w+\()?require\("([^"]+)"\)\)?;$/gm, 'import * as $1 from "$2";')
    .replace(/\bexports\./g, "");
}

/** What `src/rpc` never turns on, logging and progress: how often each is in the package's connection, and what is left. */
const EXTRAS = [
  [/^ {4}function (\w*Trace|trace\w+|logLSPMessage)\(.*\) \{$[^]*?^ {4}\}$/gm, 8, "function $1() {}"],
  [/^ +logger\.\w+\(.*\);$/gm, 18, ""],
  [/^ {8}(?:trace|onProgress|sendProgress|inspect): [^]*?^ {8}\},?$/gm, 4, ""],
  [/^ {4}connection\.onNotification\(\w+\.type, [^]*?^ {4}\}\);$/gm, 2, ""],
  [/^\(function \((\w+)\) \{$[^]*?^\}\)\(\1 \|\| \(\1 = \1 = \{\}\)\);$/gm, 2, ""],
];

/** What only the daemon does: it answers requests. */
const ANSWERS = [
  [/^ {4}async function handleRequest\(.*\) \{$[^]*?^ {4}\}$/gm, 1, "function handleRequest() {}"],
  [/^ {8}onRequest: [^]*?^ {8}\},?$/gm, 1, ""],
  [
    /^ {4}function is\(value\) \{$(?:\n {8}.*)+\n {4}\}\n {4}\w*(?:Cancellation|Connection)\w*Strategy\.is = is;$/gm,
    6,
    "",
  ],
];

function without(extras, code) {
  return extras.reduce((rest, [extra, count, instead]) => {
    const found = rest.match(extra)?.length ?? 0;
    if (found !== count)
      throw new Error(`vscode-jsonrpc has changed: ${extra} matches ${found} times instead of ${count}.`);
    return rest.replace(extra, instead);
  }, code);
}

/** The file of vscode-jsonrpc as a bundle gets it. */
function jsonRpcFile(path, extras) {
  const name = path.split(/[\\/]/).slice(-2).join("/");
  if (jsonRpcEntries[name]) return jsonRpcEntries[name];
  const code = asModule(readFileSync(path, "utf8"));
  if (/\bexports\b|\brequire\(/.test(code))
    throw new Error(`vscode-jsonrpc has changed: ${name} isn't a module.`);
  return name === "common/connection.js" ? without(extras, code) : code;
}

const jsonRpc = (extras) => ({
  name: "json-rpc",
  setup: ({ onLoad }) =>
    onLoad({ filter: /vscode-jsonrpc[\\/]lib[\\/]\w+[\\/]\w+\.js$/ }, ({ path }) => ({
      contents: jsonRpcFile(path, extras),
      loader: "js",
      resolveDir: dirname(path),
    })),
});

/**
 * What the sources name as `vscode.window` becomes an import of `window` alone, which has a short name when minified: the
 * bundler shortens the names of a module that it knows, and it doesn't know the editor's.
 */
const editorApi = {
  name: "editor-api",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^vscode$/ }, ({ path, namespace }) =>
      namespace === "editor-api"
        ? { path, external: true, sideEffects: false }
        : { path, namespace: "editor-api" },
    );
    onLoad({ filter: /^vscode$/, namespace: "editor-api" }, () => {
      const api = readFileSync("node_modules/@types/vscode/index.d.ts", "utf8");
      const names = api.matchAll(/^\texport (?:class|const|enum|namespace) (\w+)/gm);
      return { contents: [...names].map(([, name]) => `export { ${name} } from "vscode";`).join("\n") };
    });
  },
};

/** The parts of the extension in the order in which they are loaded. */
const PARTS = ["src/extension.ts", "src/window.ts", "src/ui/later.ts"].map((file) => resolve(file));

/**
 * Lets each part import those that are loaded before it, which are there already. So all code of a part is in one file,
 * instead of one for each set of parts that have something in common.
 */
const partsInOrder = {
  name: "parts-in-order",
  setup: ({ onLoad }) =>
    onLoad({ filter: /src[\\/](window|ui[\\/]later)\.ts$/ }, ({ path }) => ({
      contents: [
        ...PARTS.slice(0, PARTS.indexOf(path)).map((file) => `import ${JSON.stringify(file)};`),
        readFileSync(path, "utf8"),
      ].join("\n"),
      loader: "ts",
    })),
};

/** Code that runs in Node. */
const node = {
  ...common,
  plugins: [jsonRpc(EXTRAS)],
  platform: "node",
  target: "node20",
  // The SDK's packages name an ESM build first; taking it lets unused exports be dropped.
  mainFields: ["module", "main"],
};

const bundles = [
  {
    // What is not needed at the start is in the chunks of src/window.ts and src/ui/later.ts.
    ...node,
    format: "esm",
    splitting: true,
    plugins: [jsonRpc([...EXTRAS, ...ANSWERS]), editorApi, partsInOrder],
    charset: "utf8",
    entryPoints: { extension: "src/extension.ts" },
    outdir: "dist",
    outExtension: { ".js": ".cjs" },
    chunkNames: "chunks/[name]-[hash]",
  },
  { ...node, format: "cjs", entryPoints: ["src/daemon/main.ts"], outfile: "dist/daemon.cjs" },
  { ...node, format: "cjs", entryPoints: ["src/tokens/worker.ts"], outfile: "dist/tokenizer.cjs" },
  {
    // Runs inside the OpenCode server, from wherever its configuration says: it brings along all that it needs.
    ...node,
    format: "esm",
    target: ["node20", "es2022"],
    entryPoints: ["src/plugin/main.ts"],
    outfile: "dist/opencode-plugin.js",
  },
  {
    ...common,
    platform: "browser",
    format: "esm",
    target: "chrome122",
    entryPoints: { webview: "src/webview/main.ts", overview: "src/webview/overview.ts" },
    outdir: "dist",
  },
];

/** The members that a bundle can shorten: the private ones, also those that the authors of packages mark as private. */
async function privateMembers(bundle) {
  const { metafile } = await build({ ...bundle, minify: false, write: false });
  return new RegExp(`^(?:_[a-z].*|${privateNames(Object.keys(metafile.inputs)).join("|")})$`);
}

/**
 * Minifies a bundle once more: another minifier shortens what the bundler leaves.
 * @param hasConstructors whether it contains functions that are constructors
 */
async function minifyAgain({ outputs }, hasConstructors) {
  const minify = {
    compress: {
      ecma: 2022,
      passes: 6,
      unsafe_arrows: !hasConstructors,
      unsafe_methods: !hasConstructors,
    },
    mangle: true,
    module: true,
  };
  for (const [file, output] of Object.entries(outputs)) {
    const { code } = await transform(readFileSync(file, "utf8"), {
      jsc: { target: "es2023", minify },
      minify: true,
      isModule: true,
      swcrc: false,
    });
    writeFileSync(file, code);
    output.bytes = statSync(file).size;
  }
}

/**
 * Turns the bundler's ES modules into CommonJS, as it can split nothing else: while a window starts, the editor takes
 * longer to load ES modules. Works because no module exports what it assigns again later.
 */
function asCommonJs({ outputs }) {
  for (const [file, output] of Object.entries(outputs)) {
    if (file.endsWith(".map")) continue;
    const code = readFileSync(file, "utf8")
      .replace(
        /\bimport ?\{([^}]*)\} ?from ?("[^"]+");?/g,
        (_, names, from) => `const{${names.replace(/(\S+) as ([^\s,]+)/g, "$1:$2")}}=require(${from});`,
      )
      .replace(
        /\bexport ?\{([^}]*)\};?/,
        (_, names) => `module.exports={${names.replace(/([^\s,]+) as ([^\s,]+)/g, "$2:$1")}};`,
      )
      .replace(/\bimport ?("\.[^"]+");?/g, "require($1);")
      .replace(/\bimport\(("\.[^"]+")\)/g, "(async()=>require($1))()");
    // Throws at what only ES modules may contain.
    new Script(code, { filename: file });
    writeFileSync(file, `"use strict";${code}`);
    output.bytes = statSync(file).size;
  }
}

/** As {@link asCommonJs}, whenever the bundle has been built. */
const commonJs = {
  name: "common-js",
  setup: ({ onEnd }) => onEnd(({ metafile }) => metafile && asCommonJs(metafile)),
};

const EXTENSION = "dist/extension.cjs";

function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

/** Bytes of the extension's entry and of the chunks that it imports before anything else. */
function startSize({ outputs }) {
  const files = new Set([EXTENSION]);
  for (const file of files)
    for (const { path, kind } of outputs[file].imports)
      if (kind === "import-statement" && outputs[path]) files.add(path);
  return [...files].reduce((sum, file) => sum + outputs[file].bytes, 0);
}

/**
 * The README for the editor's page about the extension. That page loads pictures and follows links at web addresses
 * alone; those within the repository lead nowhere there.
 */
function packagedReadme() {
  return readFileSync("README.md", "utf8")
    .replace(/^!\[[^\]]*\]\(media\/[^)]+\)\n\n/gm, "")
    .replace(/\[([^\]]+)\]\((?!https:|#)[^)]+\)/g, "$1");
}

/** Tells the editor's problem matcher when the first of the bundles begins, when the last one ends, and what failed. */
function problemMatcher() {
  let building = 0;
  return {
    name: "problem-matcher",
    setup(setup) {
      setup.onStart(() => {
        if (building++ === 0) console.log("[watch] build started");
      });
      setup.onEnd(({ errors }) => {
        for (const { text, location } of errors) {
          console.error(`✘ [ERROR] ${text}`);
          if (location) console.error(`    ${location.file}:${location.line}:${location.column + 1}:`);
        }
        if (--building === 0) console.log("[watch] build finished");
      });
    },
  };
}

/** Packages that say what their license is, but come without its text: their copyright, as their repositories say it. */
const COPYRIGHTS = {
  "@opencode-ai/sdk": "Copyright (c) 2025 opencode",
  "js-tiktoken": "Copyright (c) 2022 OpenAI, Shantanu Jain",
};

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.`;

/** The notices of all packages that the bundles hold code of. Throws where a package has none. */
function thirdPartyNotices(metafiles) {
  const files = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
    ),
  );
  const folders = new Set(files.filter((file) => file.includes("node_modules/")).map(packageOf));
  const notices = new Set([...folders].map(noticeOf).sort());
  const line = "\n\n" + "=".repeat(80) + "\n\n";
  return ["Async Agents for OpenCode includes code of these packages.", ...notices].join(line) + "\n";
}

/** The folder of the package that a file belongs to: a folder within one can have a manifest as well, but no name. */
function packageOf(file) {
  let folder = dirname(file);
  while (!existsSync(join(folder, "package.json")) || !manifestOf(folder).version) folder = dirname(folder);
  return folder;
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function noticeOf(folder) {
  const { name, version, license } = manifestOf(folder);
  const texts = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice|thirdpartynotices)/i.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  if (texts.length === 0) {
    if (license !== "MIT" || !COPYRIGHTS[name]) throw new Error(`${name} ${version} has no license text.`);
    texts.push(`MIT License\n\n${COPYRIGHTS[name]}\n\n${MIT}`);
  }
  return [`${name} ${version}\nLicense: ${license}`, ...texts].join("\n\n");
}

// Chunks of an earlier build have other names.
rmSync("dist/chunks", { recursive: true, force: true });
if (watch) {
  bundles[0].plugins.push(commonJs);
  const plugins = [problemMatcher()];
  const contexts = await Promise.all(
    bundles.map((bundle) => context({ ...bundle, plugins: [...(bundle.plugins ?? []), ...plugins] })),
  );
  await Promise.all(contexts.map((each) => each.watch()));
} else {
  if (production) bundles[0].mangleProps = await privateMembers(bundles[0]);
  const results = await Promise.all(bundles.map((bundle) => build(bundle)));
  if (production) {
    // The bundles with a limit that is hard to keep.
    await minifyAgain(results[0].metafile, false);
    await minifyAgain(results.at(-1).metafile, true);
    writeFileSync("dist/README.md", packagedReadme());
  }
  asCommonJs(results[0].metafile);
  const metafiles = results.map(({ metafile }) => metafile);
  writeFileSync("dist/ThirdPartyNotices.txt", thirdPartyNotices(metafiles));
  // For the test that no notice is missing.
  writeFileSync("dist/metafiles.json", JSON.stringify(metafiles));
  for (const metafile of metafiles) {
    for (const [file, { bytes }] of Object.entries(metafile.outputs))
      if (!file.endsWith(".map")) console.log(`${file}  ${kilobytes(bytes)}`);
    if (metafile.outputs[EXTENSION]) console.log(`loaded at the start  ${kilobytes(startSize(metafile))}`);
  }
}
