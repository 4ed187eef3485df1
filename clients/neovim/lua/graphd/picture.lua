--- A graph as the daemon draws it: in boxes where that fits, else its twin in words. Goes on with the graph.
local looks = require('graphd.looks')
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

--- Where a node is drawn: its sign and its label in a box, else its first line in words.
local function place_of(node, lines)
  for _, label in ipairs({ (' %s '):format(node.label), (' %s '):format(node.id), node.id }) do
    for number, line in ipairs(lines) do
      local from, to = line:find(label, 1, true)
      if from then
        local sign = line:sub(1, from - 1):match('[^%s│]+$') or ''
        return { line = number - 1, from = from - 1 - #sign, to = to }
      end
    end
  end
end

--- Each node in its state's colour.
local function spans_of(picture, lines)
  local spans = {}
  for _, node in ipairs(picture.nodes) do
    local place = place_of(node, lines)
    if place then
      place.group = looks.group(node.state)
      table.insert(spans, place)
    end
  end
  return spans
end

local function lines_of(picture)
  local text = picture.drawing or picture.text
  local lines = vim.split((text:gsub('\n$', '')), '\n', { plain = true })
  if picture.hidden > 0 then
    table.insert(lines, t('{count} more are not drawn', { count = picture.hidden }))
  end
  return lines
end

local function draw(buffer, picture)
  local lines = lines_of(picture)
  sheet.draw(buffer, lines, spans_of(picture, lines))
  sheet.grow(buffer, sheet.width(lines) + 1, #lines)
end

--- Draws anew when the graph moves; one request at a time.
local function keep_drawing(session, buffer, graph)
  local is_asking, is_stale = false, false
  local function again()
    if is_asking then
      is_stale = true
      return
    end
    is_asking, is_stale = true, false
    session:call('workgraph/picture', { graph = graph }, function(trouble, picture)
      is_asking = false
      if not trouble and vim.api.nvim_buf_is_valid(buffer) then
        draw(buffer, picture)
      end
      if is_stale then
        again()
      end
    end)
  end
  local forget = session:listen(function(event, facts)
    if event == 'changed' and facts.graph == graph and not facts.cleared then
      again()
    end
  end)
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buffer, once = true, callback = forget })
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.show(session, target)
  require('graphd.verbs').ask(session, 'workgraph/picture', target, function(picture)
    local held = session.mirror.graphs[picture.graph]
    local title = held and held.header.title or picture.graph
    local buffer, window =
      require('graphd.reading').show(session, { graph = picture.graph }, title, lines_of(picture))
    vim.wo[window].wrap = false
    draw(buffer, picture)
    keep_drawing(session, buffer, picture.graph)
  end)
end

return M
