--- The text of the tree: what is said of the workspace, and a line for each of the daemon's rows. Pure.
local looks = require('graphd.looks')
local t = require('graphd.text').t

local M = {}

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

local function row_line(number, line, icons)
  local row = line.row
  local marker = row.collapsible == 'none' and ' ' or line.is_open and '▾' or '▸'
  local indent = ('  '):rep(line.depth)
  local sign = looks.sign(row.icon, row.state, icons)
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

local function empty_lines(is_loaded)
  if not is_loaded then
    return { '' }
  end
  return {
    '',
    t('Nothing has run here yet.'),
    t('Run a workflow: {command}', { command = ':Graphd run NAME' }),
  }
end

--- All lines, their colours, and how many of them are above the rows.
---@param session graphd.nvim.Session
---@param shown graphd.nvim.Line[]
---@param is_loaded boolean Whether the rows were read at all.
---@return string[], graphd.nvim.Span[], integer
function M.of(session, shown, is_loaded)
  local text, spans = head_lines(session)
  local head, icons = #text, require('graphd.config').get().icons
  for number, line in ipairs(shown) do
    local drawn, row_spans = row_line(head + number - 1, line, icons)
    table.insert(text, drawn)
    vim.list_extend(spans, row_spans)
  end
  if #shown == 0 then
    vim.list_extend(text, empty_lines(is_loaded))
  end
  return text, spans, head
end

return M
