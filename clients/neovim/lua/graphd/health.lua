--- `:checkhealth graphd`: what has to be there, whether it is, and what to do where it is not.
local program = require('graphd.program')
local t = require('graphd.text').t
local workspace = require('graphd.workspace')

local M = {}

local VERSION_LIMIT_MS = 1000
local STATUS_LIMIT_MS = 5000
local health = vim.health

local function check_editor()
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok(t('Neovim {version}', { version = version }))
  else
    health.error(t('Neovim {version} is too old: 0.11 or newer is needed', { version = version }))
  end
end

local function check_options()
  local _, problems = require('graphd.config').read()
  for _, problem in ipairs(problems) do
    health.error(problem, t('see {help}', { help = ':help graphd-options' }))
  end
  if #problems == 0 then
    health.ok(t('vim.g.graphd is in order'))
  end
end

--- What the program says of itself; nil where it says nothing in time.
local function version_of(path)
  local is_fine, ran = pcall(function()
    return vim.system({ path, '--version' }, { text = true, timeout = VERSION_LIMIT_MS }):wait()
  end)
  return is_fine and ran.code == 0 and vim.trim(ran.stdout) or nil
end

local function check_version(path)
  local said = version_of(path)
  local version = said and vim.version.parse(said, { strict = false })
  if not version then
    return health.warn(t('{program} did not say its version within a second', { program = path }))
  end
  local facts = { version = tostring(version), wanted = program.VERSIONS }
  if vim.version.range(program.VERSIONS):has(version) then
    health.ok(t('version {version}', facts))
  else
    health.error(t('version {version} does not fit: {wanted} is needed', facts), 'pipx upgrade workgraphd')
  end
end

---@param root string
---@return string?
local function check_program(root)
  local found = program.find(root)
  if not found.path then
    health.error(found.problem, program.INSTALL)
    return
  end
  health.ok(t('program: {path} ({source})', { path = found.path, source = found.source }))
  check_version(found.path)
  return found.path
end

local function check_protocol(facts)
  local spoken = facts.protocol or 0
  local range = program.PROTOCOL
  local says = { spoken = spoken, lowest = range.lowest, highest = range.highest }
  if spoken >= range.lowest and spoken <= range.highest then
    health.ok(t('protocol {spoken}', says))
  else
    health.error(t('protocol {spoken}; this client speaks {lowest} to {highest}', says))
  end
end

--- The daemon as another process sees it: whether its socket can be reached. Starts none.
local function check_socket(path, root)
  local asked = { path, 'status', '--json', '--workspace', root }
  local is_fine, ran = pcall(function()
    return vim.system(asked, { text = true, timeout = STATUS_LIMIT_MS }):wait()
  end)
  local is_json, said = pcall(vim.json.decode, is_fine and ran.stdout or '')
  if not is_json or type(said) ~= 'table' or said.error then
    local reason = is_json and said.error and said.error.message
      or is_fine and vim.trim(ran.stderr)
      or tostring(ran)
    return health.error(t('the daemon could not be asked: {reason}', { reason = reason }), 'graphd doctor')
  end
  local daemon = said.daemon
  if type(daemon) == 'table' then
    health.ok(t('socket: {socket}', { socket = daemon.socket or '?' }))
  else
    health.info(t('no daemon runs for this workspace; the first use starts it'))
  end
end

local function check_session(root)
  local session = workspace.known(root)
  if not session or session.state ~= 'live' then
    local state = session and session.state or 'idle'
    local hint =
      t('it is connected to when {command} or a workflow file is opened', { command = ':Graphd tree' })
    local why = session and session.reason and ': ' .. session.reason or ''
    return health.info(('%s%s\n%s'):format(t('not connected ({state})', { state = state }), why, hint))
  end
  local daemon = session.facts.daemon or {}
  local facts = { version = daemon.version or '?', pid = daemon.pid or '?' }
  health.ok(t('the daemon answers: graphd {version}, pid {pid}', facts))
  check_protocol(session.facts)
end

function M.check()
  local root = workspace.root_of(vim.fn.bufnr('#') > 0 and vim.fn.bufnr('#') or nil)
  health.start('graphd: Neovim')
  check_editor()
  check_options()
  health.start('graphd: program')
  local path = check_program(root)
  health.start('graphd: workspace')
  health.info(t('workspace: {root}', { root = root }))
  if path then
    check_socket(path, root)
    check_session(root)
  end
end

return M
