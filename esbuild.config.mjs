import { context, build } from "esbuild";

const production = process.argv.includes("--production");
const watch = process.argv.includes("--watch");

const common = {
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};

/** Code that runs in the extension host (CommonJS, `vscode` comes from the editor). */
const host = {
  ...common,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  // The SDK's packages name an ESM build first; taking it lets unused exports be dropped.
  mainFields: ["module", "main"],
};

const bundles = [
  { ...host, entryPoints: ["src/extension.ts"], outfile: "dist/extension.cjs" },
  { ...host, entryPoints: ["src/opencode/watchdog/main.ts"], outfile: "dist/watchdog.cjs" },
  {
    ...common,
    platform: "browser",
    format: "esm",
    target: "chrome122",
    entryPoints: ["src/webview/main.ts"],
    outfile: "dist/webview.js",
  },
];

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

if (watch) {
  const plugins = [problemMatcher()];
  const contexts = await Promise.all(bundles.map((bundle) => context({ ...bundle, plugins })));
  await Promise.all(contexts.map((each) => each.watch()));
} else {
  const results = await Promise.all(bundles.map((bundle) => build(bundle)));
  for (const { metafile } of results)
    for (const [file, { bytes }] of Object.entries(metafile.outputs))
      if (!file.endsWith(".map")) console.log(`${file}  ${(bytes / 1000).toFixed(1)} kB`);
}
