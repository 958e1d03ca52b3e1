// Reads lists of arguments as the npx and npm of one release do, up to the point where they would run something.
// node reading.js NPM, lists as JSON on stdin; for each list, on stdout: whether a text or a program to run was found.
const { readFileSync, writeSync } = require('node:fs')
const npm = process.argv[2]
const cli = require.resolve(`${npm}/lib/cli.js`)
const npx = require.resolve(`${npm}/bin/npx-cli.js`)
const tables = require(`${npm}/node_modules/@npmcli/config/lib/definitions`)
const Config = require(`${npm}/node_modules/@npmcli/config`)
const lists = JSON.parse(readFileSync(0))

require.cache[cli] = { id: cli, filename: cli, loaded: true, exports: () => {} }
console.error = () => {}

const found = lists.map(args => {
  process.argv = ['node', npx, ...args]
  delete require.cache[npx]
  require(npx)
  const config = new Config({ ...tables, npmPath: npm, env: {}, argv: process.argv, warn: false })
  config.loadDefaults()
  config.loadCLI()
  return ['call', 'script-shell', 'node-options'].some(key => config.data.get('cli').data[key])
})
writeSync(1, JSON.stringify(found))
