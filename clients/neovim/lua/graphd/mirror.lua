--- Graphs as the daemon told them: headers, nodes and open asks, folded from `workgraph/changed`. Pure.
---
--- Source: docs/protocol.md, What a client has to know.

---@class graphd.nvim.Held
---@field rev integer
---@field header graphd.Header
---@field nodes table<string, graphd.Node>
---@field order string[] Slugs, as they came.
---@field asks graphd.Ask[]
---@field proposals graphd.Proposal[]

---@class graphd.nvim.Mirror
---@field graphs table<string, graphd.nvim.Held>
local Mirror = {}
Mirror.__index = Mirror

---@return graphd.nvim.Mirror
function Mirror.new()
  return setmetatable({ graphs = {} }, Mirror)
end

local function fold_nodes(held, nodes)
  for _, node in ipairs(nodes or {}) do
    if not held.nodes[node.slug] then
      table.insert(held.order, node.slug)
    end
    held.nodes[node.slug] = node
  end
end

--- Folds one value in. `false`: it begins after what is held, so the graph has to be asked for whole; nothing was folded
--- then. A value that says nothing new changes nothing; one that begins earlier says some of it twice, which is harmless.
---@param changed graphd.Changed
---@return boolean
function Mirror:apply(changed)
  local held = self.graphs[changed.graph]
  if changed.cleared then
    self.graphs[changed.graph] = nil
    return true
  end
  if changed.full then
    held = { rev = 0, header = changed.header, nodes = {}, order = {}, asks = {}, proposals = {} }
    self.graphs[changed.graph] = held
  elseif not held or changed.from > held.rev then
    return false
  elseif changed.rev <= held.rev then
    return true
  end
  held.rev = changed.rev
  held.header = changed.header or held.header
  held.asks = changed.asks or held.asks
  held.proposals = changed.proposals or held.proposals
  fold_nodes(held, changed.nodes)
  return true
end

--- What to subscribe with after an absence.
---@return table<string, integer>
function Mirror:revs()
  local revs = vim.empty_dict()
  for graph, held in pairs(self.graphs) do
    revs[graph] = held.rev
  end
  return revs
end

--- The newest graph that came from a file.
---@param path string A real path.
---@return graphd.nvim.Held?
function Mirror:from_file(path)
  local newest
  for _, held in pairs(self.graphs) do
    local source = held.header.source
    if source and source.path and vim.uv.fs_realpath(source.path) == path then
      if not newest or held.header.createdAt > newest.header.createdAt then
        newest = held
      end
    end
  end
  return newest
end

local LIVE = { active = true, user_paused = true, infra_paused = true, budget_limited = true }

--- Graphs that are not at their end, newest first.
---@return graphd.nvim.Held[]
function Mirror:live()
  local found = vim.tbl_filter(function(held)
    return LIVE[held.header.status] == true
  end, vim.tbl_values(self.graphs))
  table.sort(found, function(a, b)
    return a.header.createdAt > b.header.createdAt
  end)
  return found
end

--- Open asks of all graphs, oldest first.
---@return graphd.Ask[]
function Mirror:asks()
  local found = {}
  for _, held in pairs(self.graphs) do
    vim.list_extend(found, held.asks)
  end
  table.sort(found, function(a, b)
    return a.openedAt < b.openedAt or a.openedAt == b.openedAt and a.id < b.id
  end)
  return found
end

return Mirror
