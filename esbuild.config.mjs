import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { context, build } from "esbuild";
import { thirdPartyNotices } from "./third-party-notices.mjs";

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

/** Code that runs in Node. */
const node = {
  ...common,
  platform: "node",
  target: "node20",
  // The SDK's packages name an ESM build first; taking it lets unused exports be dropped.
  mainFields: ["module", "main"],
};

/**
 * Puts what is imported dynamically into two chunks: what works on folders, which every window needs, and what a person
 * sees and does, which is needed when they do. Left to itself, the bundler makes one of each import and of each
 * combination that shares code, and the editor reads them one after the other at the start of a window.
 */
const laterChunks = {
  name: "later-chunks",
  setup(setup) {
    const dynamicImport = /\bimport\("(\.[^"]+)"\)/g;
    const chunks = { work: new Map(), ui: new Map() };
    const chunkOf = (file) => (file.startsWith(resolve("src/ui")) ? "ui" : "work");
    const nameOf = (file) => {
      const files = chunks[chunkOf(file)];
      if (!files.has(file)) files.set(file, `later${files.size}`);
      return files.get(file);
    };
    // The whole of the source is read first, as a chunk is made of what all of it imports.
    setup.onStart(() => {
      const sources = readdirSync("src", { recursive: true }).filter((file) => file.endsWith(".ts"));
      for (const file of sources.map((path) => join("src", path)))
        for (const [, path] of readFileSync(file, "utf8").matchAll(dynamicImport))
          nameOf(resolve(dirname(file), path));
    });
    setup.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path: importer }) => {
      const contents = readFileSync(importer, "utf8").replace(dynamicImport, (_, path) => {
        const file = resolve(dirname(importer), path);
        return `import("later:${chunkOf(file)}").then((later) => later.${nameOf(file)})`;
      });
      return { contents, loader: "ts" };
    });
    setup.onResolve({ filter: /^later:/ }, ({ path }) => ({
      path: path.slice("later:".length),
      namespace: "later",
    }));
    setup.onLoad({ filter: /^/, namespace: "later" }, ({ path: chunk }) => ({
      contents: [...chunks[chunk]]
        .map(([file, name]) => `export * as ${name} from ${JSON.stringify(file)};`)
        .join("\n"),
      resolveDir: ".",
    }));
  },
};

const bundles = [
  {
    // What is not needed at the start is in a chunk that is loaded when it is.
    ...node,
    plugins: [laterChunks],
    format: "esm",
    splitting: true,
    external: ["vscode"],
    entryPoints: { extension: "src/extension.ts" },
    outdir: "dist",
    chunkNames: "chunks/[name]-[hash]",
  },
  { ...node, format: "cjs", entryPoints: ["src/opencode/watchdog/main.ts"], outfile: "dist/watchdog.cjs" },
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
    entryPoints: ["src/webview/main.ts"],
    outfile: "dist/webview.js",
  },
];

const EXTENSION = "dist/extension.js";

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
 * The README for the editor's page about the extension. That page loads pictures from web addresses alone; those of the
 * repository have none there and would show as broken.
 */
function readmeWithoutPictures() {
  return readFileSync("README.md", "utf8").replace(/^!\[[^\]]*\]\(media\/[^)]+\)\n\n/gm, "");
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

// Chunks of an earlier build have other names.
rmSync("dist/chunks", { recursive: true, force: true });
if (watch) {
  const plugins = [problemMatcher()];
  const contexts = await Promise.all(
    bundles.map((bundle) => context({ ...bundle, plugins: [...(bundle.plugins ?? []), ...plugins] })),
  );
  await Promise.all(contexts.map((each) => each.watch()));
} else {
  const results = await Promise.all(bundles.map((bundle) => build(bundle)));
  if (production) writeFileSync("dist/README.md", readmeWithoutPictures());
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
