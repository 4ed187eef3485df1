--- The keys of the tree: what each does with the row under the cursor, as far as the row's commands allow.
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

-- ---- rows ------------------------------------------------------------------------------------------------------------

---@param tree graphd.nvim.Tree
---@return graphd.TreeRow?
function M.row_here(tree)
  local line = tree.lines[vim.api.nvim_win_get_cursor(0)[1] - tree.head]
  return line and line.row
end

--- What a row is of, in the words of requests.
---@param row graphd.TreeRow
---@return {graph: string, node?: string, attempt?: integer}
function M.target_of(row)
  local graph, rest = row.id:match('^([^/]+)/(.+)$')
  if not graph then
    return { graph = row.id }
  end
  local node, attempt = rest:match('^(.*)@(%d+)$')
  return { graph = graph, node = node or rest, attempt = tonumber(attempt) }
end

--- The row's own command of a name, else its node's, else its graph's.
local function command_of(tree, row, name)
  for _, one in ipairs(tree.rows:within(row)) do
    for _, command in ipairs(one.commands) do
      if command.command == 'graphd.' .. name then
        return command, one
      end
    end
  end
end

local function not_possible(tree, command, row)
  local say = require('graphd.say')
  local target = M.target_of(row)
  local what = t('{command} is not possible now', { command = command.title })
  if not target.node then
    return say.warn(('%s: %s'):format(what, row.description))
  end
  local asked = { graph = target.graph, node = target.node }
  tree.session:call('workgraph/why', asked, function(trouble, reasons)
    local reason = not trouble and reasons[1]
    say.warn(('%s: %s'):format(what, reason and reason.detail or row.state))
  end)
end

local function run_command(tree, row, command, owner)
  if command.enabled then
    require('graphd.verbs').execute(tree.session, command.command, command.arguments[1])
  else
    not_possible(tree, command, owner or row)
  end
end

local function act(tree, name)
  return function()
    local row = M.row_here(tree)
    if not row then
      return
    end
    local command, owner = command_of(tree, row, name)
    if command then
      run_command(tree, row, command, owner)
    end
  end
end

local function verb(tree, name)
  return function()
    local row = M.row_here(tree)
    if row then
      require('graphd.verbs')[name](tree.session, M.target_of(row))
    end
  end
end

-- ---- keys ------------------------------------------------------------------------------------------------------------

local function open_row(tree)
  local row = M.row_here(tree)
  if not row then
    return
  end
  if row.collapsible == 'none' then
    act(tree, 'openOutput')()
  else
    tree.rows:set_open(row, not tree.rows:is_open(row))
  end
end

local function fold(tree, is_open)
  return function()
    local row = M.row_here(tree)
    if row and row.collapsible ~= 'none' then
      tree.rows:set_open(row, is_open)
    end
  end
end

local function choose(tree)
  local row = M.row_here(tree)
  if not row or #row.commands == 0 then
    return
  end
  local function title(command)
    return command.enabled and command.title or t('{command} (not now)', { command = command.title })
  end
  require('graphd.choice').open(row.commands, { prompt = row.label, format_item = title }, function(command)
    if command then
      run_command(tree, row, command)
    end
  end)
end

local show_keys

--- Key, what it does, how.
---@param tree graphd.nvim.Tree
---@return {[1]: string, [2]: string, [3]: function}[]
function M.of(tree)
  local function answer()
    require('graphd.asks').open(tree.session)
  end
  return {
    {
      '<CR>',
      t('open or close the row; the output, where there is nothing below'),
      function()
        open_row(tree)
      end,
    },
    { 'l', t('open the row'), fold(tree, true) },
    { 'h', t('close the row'), fold(tree, false) },
    { 'o', t('output'), act(tree, 'openOutput') },
    { 'r', t('retry the node, or all that failed'), act(tree, 'retry') },
    { 'p', t('pause'), act(tree, 'pause') },
    { 'c', t('resume'), act(tree, 'resume') },
    { 's', t('step: one node, then pause'), verb(tree, 'step') },
    { 'x', t('cancel the graph'), act(tree, 'cancel') },
    { 'w', t('why it is where it is'), verb(tree, 'why') },
    { 'd', t('what the node changed'), verb(tree, 'diff') },
    { 'D', t('the graph as a drawing'), verb(tree, 'show') },
    { 'a', t('answer a question'), answer },
    {
      '.',
      t('all commands of the row'),
      function()
        choose(tree)
      end,
    },
    {
      'R',
      t('read anew'),
      function()
        tree.rows:read()
      end,
    },
    {
      'q',
      t('close'),
      function()
        vim.api.nvim_win_close(0, false)
      end,
    },
    {
      'g?',
      t('these keys'),
      function()
        show_keys(tree)
      end,
    },
  }
end

function show_keys(tree)
  local lines, spans = {}, {}
  for number, key in ipairs(M.of(tree)) do
    lines[number] = (' %-6s%s '):format(key[1], key[2])
    spans[number] = { line = number - 1, from = 1, to = 1 + #key[1], group = 'GraphdKey' }
  end
  local buffer = sheet.new('graphd-keys', { root = tree.session.root })
  vim.bo[buffer].bufhidden = 'wipe'
  sheet.draw(buffer, lines, spans)
  local window = sheet.float(buffer, { title = t('Keys'), width = sheet.width(lines), height = #lines })
  local function close()
    sheet.close(window)
  end
  sheet.keys(buffer, { q = close, ['<Esc>'] = close, ['g?'] = close })
end

return M
