// Bundles the console's page into ../dist, which is in the repository, so that a build of the tool needs no
// node. Fails if the page exceeds its size limits. Usage: node build.mjs [FOLDER/]
import { build } from 'esbuild';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const out = process.argv[2] ? pathToFileURL(process.argv[2]) : new URL('../dist/', import.meta.url);
const here = new URL('./', import.meta.url);
const limits = { script: 60 * 1024, style: 15 * 1024 };

mkdirSync(out, { recursive: true });
const result = await build({
  absWorkingDir: here.pathname,
  entryPoints: { console: 'src/main.tsx' },
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'iife',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  metafile: true,
  outdir: out.pathname,
});
const style = await build({
  absWorkingDir: here.pathname,
  entryPoints: ['console.css'],
  minify: true,
  charset: 'utf8',
  outdir: out.pathname,
});
for (const warning of [...result.warnings, ...style.warnings]) throw new Error(warning.text);
for (const name of ['index.html', 'icon.svg']) copyFileSync(new URL(name, here), new URL(name, out));

/** Packages with a file in the bundle. */
const packages = new Set(
  Object.keys(result.metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter(Boolean),
);
const licences = [...packages].sort().map((name) => {
  const folder = new URL(`node_modules/${name}/`, here);
  const { version, license } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
  return `${name} ${version} (${license})\n\n${readFileSync(new URL('LICENSE', folder), 'utf8').trim()}\n`;
});
writeFileSync(new URL('licences.txt', out), licences.join(`\n${'-'.repeat(72)}\n\n`));

const script = gzipSync(readFileSync(new URL('console.js', out)), { level: 9 }).length;
const css = readFileSync(new URL('console.css', out)).length;
console.log(`console.js: ${script} bytes compressed of ${limits.script}; console.css: ${css} bytes of ${limits.style}`);
if (script > limits.script || css > limits.style) throw new Error('The page is larger than it may be.');
