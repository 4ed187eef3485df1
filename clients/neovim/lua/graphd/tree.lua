--- The tree buffer: graphs, nodes and attempts as the daemon's rows say, one key for each thing that can be done.
local Rows = require('graphd.rows')
local looks = require('graphd.looks')
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

local PACE_MS = 60

---@class graphd.nvim.Tree
---@field buffer integer
---@field rows table
---@field lines graphd.nvim.Line[]
---@field head integer Lines above the rows.
---@field session graphd.nvim.Session

---@type table<string, graphd.nvim.Tree> By workspace.
local trees = {}
---@type table<integer, graphd.nvim.Tree> By buffer.
local by_buffer = {}

-- ---- drawing ---------------------------------------------------------------------------------------------------------

--- The workspace, and below it what is not as it should be: the connection, a question that waits.
---@param session graphd.nvim.Session
---@return string[], graphd.nvim.Span[]
local function head_lines(session)
  local name = vim.fn.fnamemodify(session.root, ':~')
  local lines, spans = { name }, { { line = 0, from = 0, to = #name, group = 'GraphdTitle' } }
  local function add(text, group)
    local flat = text:gsub('%s*\n%s*', ' ')
    table.insert(lines, flat)
    table.insert(spans, { line = #lines - 1, from = 0, to = #flat, group = group })
  end
  local says = {
    starting = t('connecting'),
    lost = t('reconnecting'),
    stopped = t('stopped; to connect again: {command}', { command = ':Graphd restart' }),
    failed = t('not connected; to connect again: {command}', { command = ':Graphd restart' }),
  }
  if says[session.state] then
    add('! ' .. says[session.state], 'GraphdPaused')
    if session.state ~= 'lost' and session.state ~= 'starting' and (session.reason or '') ~= '' then
      add('  ' .. session.reason, 'GraphdDescription')
    end
  end
  local asks = #session.mirror:asks()
  if asks > 0 then
    add('? ' .. t('{count} waits for an answer: {key}', { count = asks, key = 'a' }), 'GraphdAsk')
  end
  return lines, spans
end

local function row_line(number, line)
  local row = line.row
  local marker = row.collapsible == 'none' and ' ' or line.is_open and '▾' or '▸'
  local indent = ('  '):rep(line.depth)
  local sign = looks.sign(row.icon, row.state)
  local before = ('%s%s '):format(indent, marker)
  local label = row.label:gsub('\n', ' ')
  local text = ('%s%s %s'):format(before, sign, label)
  local state = row.icon == 'warning' and 'stuck' or row.state
  local spans = {
    { line = number, from = 0, to = #before, group = 'GraphdQuiet' },
    { line = number, from = #before, to = #before + #sign, group = looks.group(state) },
  }
  if line.depth == 0 then
    table.insert(spans, { line = number, from = #before + #sign + 1, to = #text, group = 'GraphdTitle' })
  end
  if row.description ~= '' then
    table.insert(
      spans,
      { line = number, from = #text, to = #text + 2 + #row.description, group = 'GraphdDescription' }
    )
    text = ('%s  %s'):format(text, row.description:gsub('\n', ' '))
  end
  return text, spans
end

local function empty_lines(tree)
  if not tree.rows.is_loaded then
    return { '' }
  end
  return {
    '',
    t('Nothing has run here yet.'),
    t('Run a workflow: {command}', { command = ':Graphd run NAME' }),
  }
end

--- What running nodes print, behind their rows.
local function draw_activity(tree)
  for number, line in ipairs(tree.lines) do
    local graph, node = line.row.id:match('^([^/]+)/([^@]+)$')
    local doing = graph and (tree.session.activity[graph] or {})[node]
    if doing and doing.lastLine and line.row.state == 'running' then
      sheet.note(tree.buffer, tree.head + number - 1, '⋯ ' .. doing.lastLine, 'GraphdActivity')
    end
  end
end

local function places(tree)
  local found = {}
  for _, window in ipairs(vim.fn.win_findbuf(tree.buffer)) do
    local cursor = vim.api.nvim_win_get_cursor(window)
    local line = tree.lines[cursor[1] - tree.head]
    found[window] = { id = line and line.row.id, cursor = cursor }
  end
  return found
end

--- Each cursor stays on its row; where that went, on the line that it was on.
local function put_back(tree, before)
  local number_of = {}
  for number, line in ipairs(tree.lines) do
    number_of[line.row.id] = number + tree.head
  end
  local last = vim.api.nvim_buf_line_count(tree.buffer)
  for window, place in pairs(before) do
    local number = number_of[place.id or ''] or math.min(place.cursor[1], last)
    if not place.id and #tree.lines > 0 then
      number = math.max(number, tree.head + 1)
    end
    pcall(vim.api.nvim_win_set_cursor, window, { number, place.cursor[2] })
  end
end

local function draw(tree)
  if not vim.api.nvim_buf_is_valid(tree.buffer) then
    return
  end
  local before = places(tree)
  tree.lines = tree.rows:lines()
  local text, spans = head_lines(tree.session)
  tree.head = #text
  for number, line in ipairs(tree.lines) do
    local drawn, row_spans = row_line(tree.head + number - 1, line)
    table.insert(text, drawn)
    vim.list_extend(spans, row_spans)
  end
  if #tree.lines == 0 then
    vim.list_extend(text, empty_lines(tree))
  end
  sheet.draw(tree.buffer, text, spans)
  draw_activity(tree)
  put_back(tree, before)
end

--- Once for all that comes within a moment.
local function paced(act)
  local is_due = false
  return function()
    if not is_due then
      is_due = true
      vim.defer_fn(function()
        is_due = false
        act()
      end, PACE_MS)
    end
  end
end

-- ---- rows ------------------------------------------------------------------------------------------------------------

---@param tree graphd.nvim.Tree
---@return graphd.TreeRow?
local function row_here(tree)
  local line = tree.lines[vim.api.nvim_win_get_cursor(0)[1] - tree.head]
  return line and line.row
end

--- What a row is of, in the words of requests.
---@param row graphd.TreeRow
---@return {graph: string, node?: string, attempt?: integer}
local function target_of(row)
  local graph, rest = row.id:match('^([^/]+)/(.+)$')
  if not graph then
    return { graph = row.id }
  end
  local node, attempt = rest:match('^(.*)@(%d+)$')
  return { graph = graph, node = node or rest, attempt = tonumber(attempt) }
end

--- The row under the cursor of a tree buffer, as a target.
---@param buffer integer
---@return {graph: string, node?: string, attempt?: integer}?
function M.target(buffer)
  local tree = by_buffer[buffer]
  local row = tree and row_here(tree)
  return row and target_of(row)
end

--- The row's own command of a name, else its graph's.
local function command_of(tree, row, name)
  for _, one in ipairs({ row, tree.rows:graph_of(row) }) do
    for _, command in ipairs(one.commands) do
      if command.command == 'graphd.' .. name then
        return command, one
      end
    end
  end
end

local function not_possible(tree, command, row)
  local say = require('graphd.say')
  local target = target_of(row)
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
    local row = row_here(tree)
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
    local row = row_here(tree)
    if row then
      require('graphd.verbs')[name](tree.session, target_of(row))
    end
  end
end

-- ---- keys ------------------------------------------------------------------------------------------------------------

local function open_row(tree)
  local row = row_here(tree)
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
    local row = row_here(tree)
    if row and row.collapsible ~= 'none' then
      tree.rows:set_open(row, is_open)
    end
  end
end

local function choose(tree)
  local row = row_here(tree)
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

--- Key, what it does, how.
local function keys_of(tree)
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
        M.show_keys(tree)
      end,
    },
  }
end

---@param tree graphd.nvim.Tree
function M.show_keys(tree)
  local lines, spans = {}, {}
  for number, key in ipairs(keys_of(tree)) do
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

-- ---- the buffer ------------------------------------------------------------------------------------------------------

local function make(session)
  local tree = { session = session, lines = {}, head = 1 }
  tree.buffer = sheet.new('graphd', { root = session.root })
  vim.api.nvim_buf_set_name(tree.buffer, ('graphd://%s'):format(vim.fn.fnamemodify(session.root, ':~')))
  local redraw = paced(function()
    draw(tree)
  end)
  tree.rows = Rows.new(session, function()
    draw(tree)
  end)
  local read = paced(function()
    tree.rows:read()
  end)
  tree.forget = session:listen(function(event)
    if event == 'changed' then
      read()
    elseif event ~= 'output' then
      redraw()
    end
  end)
  for _, key in ipairs(keys_of(tree)) do
    sheet.keys(tree.buffer, { [key[1]] = key[3] })
  end
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = tree.buffer,
    callback = function()
      tree.forget()
      trees[session.root], by_buffer[tree.buffer] = nil, nil
    end,
  })
  trees[session.root], by_buffer[tree.buffer] = tree, tree
  draw(tree)
  tree.rows:read()
  return tree
end

local function open_window(buffer)
  local options = require('graphd.config').get().tree
  local split = { left = 'topleft vertical', right = 'botright vertical', bottom = 'botright' }
  vim.cmd(('%s %dsplit'):format(split[options.side], options.size))
  local window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(window, buffer)
  local looks_of =
    { number = false, relativenumber = false, wrap = false, signcolumn = 'no', foldcolumn = '0' }
  looks_of.list, looks_of.spell, looks_of.cursorline = false, false, true
  looks_of[options.side == 'bottom' and 'winfixheight' or 'winfixwidth'] = true
  for name, value in pairs(looks_of) do
    vim.api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
end

--- Shows the tree of a workspace: goes to its window, or opens one.
---@param session graphd.nvim.Session
function M.open(session)
  local tree = trees[session.root] or make(session)
  local window = vim.fn.win_findbuf(tree.buffer)[1]
  if window then
    vim.api.nvim_set_current_win(window)
  else
    open_window(tree.buffer)
    draw(tree)
  end
end

return M
