--- The tree buffer: graphs, nodes and attempts as the daemon's rows say, one key for each thing that can be done.
local Rows = require('graphd.rows')
local keys = require('graphd.tree_keys')
local lines = require('graphd.tree_lines')
local sheet = require('graphd.sheet')

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
  local text, spans, head = lines.of(tree.session, tree.lines, tree.rows.is_loaded)
  tree.head = head
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
  for _, key in ipairs(keys.of(tree)) do
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

--- The row under the cursor of a tree buffer, as a target.
---@param buffer integer
---@return {graph: string, node?: string, attempt?: integer}?
function M.target(buffer)
  local tree = by_buffer[buffer]
  local row = tree and keys.row_here(tree)
  return row and keys.target_of(row)
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
