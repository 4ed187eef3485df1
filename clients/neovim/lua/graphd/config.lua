--- What the user set in `vim.g.graphd`: a table, or a function that gives one. Checked at each reading.
local t = require('graphd.text').t

local M = {}

---@class graphd.nvim.TreeOptions
---@field side? 'left'|'right'|'bottom' Where the tree opens.
---@field size? integer Columns of it, or lines at the bottom.

---@class graphd.nvim.Options
---@field program? string An absolute path, or a name on PATH. Left out: the workspace's `.venv`, then PATH.
---@field attach? boolean Workflow files get the language server when they are opened.
---@field lenses? boolean Show what can be done with a file above its lines.
---@field states? boolean Show the live state of nodes in the file, where inlay hints are off.
---@field asks? 'notify'|'prompt'|'off' What happens when an agent asks: a message, the question itself, nothing.
---@field locale? string The language of messages, such as `zh`; left out: `v:lang`.
---@field tree? graphd.nvim.TreeOptions
---@field icons? table<string, string> A sign for an icon's name or a state, in place of ours.

---@type graphd.nvim.Options
local DEFAULTS = {
  attach = true,
  lenses = true,
  states = true,
  asks = 'notify',
  tree = { side = 'left', size = 44 },
  icons = {},
}

local KINDS = {
  program = 'string',
  attach = 'boolean',
  lenses = 'boolean',
  states = 'boolean',
  asks = { 'notify', 'prompt', 'off' },
  locale = 'string',
  tree = 'table',
  icons = 'table',
}
local TREE_KINDS = { side = { 'left', 'right', 'bottom' }, size = 'number' }

local function fits(value, kind)
  if type(kind) == 'table' then
    return vim.list_contains(kind, value)
  end
  return type(value) == kind
end

local function misfit(name, kind, value)
  local expected = type(kind) == 'table' and table.concat(kind, ' | ') or kind
  local facts = { name = name, expected = expected, got = vim.inspect(value) }
  return t('{name} must be {expected}, not {got}', facts)
end

--- Keeps what fits; says of the rest what, where and what instead.
local function checked(given, kinds, prefix, problems)
  local kept = {}
  for name, value in pairs(given) do
    local kind, full = kinds[name], prefix .. tostring(name)
    if kind == nil then
      local known = table.concat(vim.fn.sort(vim.tbl_keys(kinds)), ', ')
      table.insert(problems, t('{name} is no option; there are: {known}', { name = full, known = known }))
    elseif fits(value, kind) then
      kept[name] = value
    else
      table.insert(problems, misfit(full, kind, value))
    end
  end
  return kept
end

local function given_options(problems)
  local given = vim.g.graphd
  if type(given) == 'function' then
    local is_fine, made = pcall(given)
    if not is_fine then
      table.insert(problems, t('vim.g.graphd failed: {reason}', { reason = tostring(made) }))
      return {}
    end
    given = made
  end
  if given ~= nil and type(given) ~= 'table' then
    table.insert(problems, misfit('vim.g.graphd', 'table', given))
    return {}
  end
  return given or {}
end

--- The options in force, and what is wrong with those that were given.
---@return graphd.nvim.Options, string[]
function M.read()
  local problems = {}
  local kept = checked(given_options(problems), KINDS, '', problems)
  if kept.tree then
    kept.tree = checked(kept.tree, TREE_KINDS, 'tree.', problems)
  end
  return vim.tbl_deep_extend('force', DEFAULTS, kept), problems
end

local warned = {}

--- The options in force. Each problem is told once.
---@return graphd.nvim.Options
function M.get()
  local options, problems = M.read()
  for _, problem in ipairs(problems) do
    if not warned[problem] then
      warned[problem] = true
      require('graphd.say').warn(problem)
    end
  end
  return options
end

return M
