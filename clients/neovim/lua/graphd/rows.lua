--- The rows of the tree, as `workgraph/tree` gives them, and which of them are open.
local Rows = {}
Rows.__index = Rows

---@class graphd.nvim.Line A row with its place.
---@field row graphd.TreeRow
---@field depth integer
---@field is_open boolean

---@param session graphd.nvim.Session
---@param loaded fun() Called after each reading.
function Rows.new(session, loaded)
  return setmetatable({
    session = session,
    is_loaded = false,
    _loaded = loaded,
    _top = {},
    _below = {},
    _open = {},
    _is_reading = false,
    _is_stale = false,
  }, Rows)
end

---@param row graphd.TreeRow
function Rows:is_open(row)
  local open = self._open[row.id]
  if open == nil then
    return row.collapsible == 'expanded'
  end
  return open and row.collapsible ~= 'none'
end

---@param row graphd.TreeRow
---@param is_open boolean
function Rows:set_open(row, is_open)
  self._open[row.id] = is_open
  self:read()
end

--- What is below a row is asked for by what its id names.
local function params_below(row)
  local graph, node = row.id:match('^([^/]+)/(.+)$')
  return graph and { graph = graph, node = node } or { graph = row.id }
end

--- Reads what is open anew. While a reading is under way the next one waits, so a storm of changes costs little.
function Rows:read()
  if self._is_reading then
    self._is_stale = true
    return
  end
  self._is_reading, self._is_stale = true, false
  local below, under_way = {}, 1
  local top = self._top
  local function done()
    under_way = under_way - 1
    if under_way == 0 then
      self._top, self._below, self._is_reading, self.is_loaded = top, below, false, true
      self._loaded()
      if self._is_stale then
        self:read()
      end
    end
  end
  local function descend(rows)
    for _, row in ipairs(rows) do
      if self:is_open(row) then
        under_way = under_way + 1
        self.session:call('workgraph/tree', params_below(row), function(trouble, found)
          below[row.id] = not trouble and found or self._below[row.id]
          descend(not trouble and found or {})
          done()
        end)
      end
    end
  end
  self.session:call('workgraph/tree', nil, function(trouble, found)
    if trouble then
      below = self._below
    else
      top = found
      descend(found)
    end
    done()
  end)
end

--- All lines from top to bottom.
---@return graphd.nvim.Line[]
function Rows:lines()
  local lines = {}
  local function add(rows, depth)
    for _, row in ipairs(rows) do
      local is_open = self:is_open(row)
      table.insert(lines, { row = row, depth = depth, is_open = is_open })
      if is_open then
        add(self._below[row.id] or {}, depth + 1)
      end
    end
  end
  add(self._top, 0)
  return lines
end

--- A row and those that it is in, the nearest first.
---@param row graphd.TreeRow
---@return graphd.TreeRow[]
function Rows:within(row)
  local found, seen = { row }, { [row.id] = true }
  local graph = row.id:match('^[^/]+')
  local above = vim.list_extend(vim.list_extend({}, self._below[graph] or {}), self._top)
  for _, one in ipairs(above) do
    local is_around = one.id == graph or vim.startswith(row.id, one.id .. '@')
    if is_around and not seen[one.id] then
      seen[one.id] = true
      table.insert(found, one)
    end
  end
  return found
end

return Rows
