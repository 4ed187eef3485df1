/** Bundles the extension and the panel's page into dist/. */
import { build } from 'esbuild';

const common = { bundle: true, minify: true, legalComments: 'none', logLevel: 'warning' };
await build({ ...common, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', platform: 'node', format: 'cjs', target: 'node20', external: ['vscode'] });
await build({ ...common, entryPoints: ['src/webview/page.ts'], outfile: 'dist/page.js', platform: 'browser', format: 'iife', target: 'es2022' });
