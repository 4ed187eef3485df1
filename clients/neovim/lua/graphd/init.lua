--- What a configuration may call. Everything else is reached by `:Graphd` and `<Plug>(graphd-…)`.
local M = {}

local SIGNS = { starting = '…', lost = '⟳', stopped = '■', failed = '!' }

local function of_graph(held)
  local counts, all, settled = held.header.counts, 0, 0
  for state, count in pairs(counts) do
    all = all + count
    settled = settled + ((state == 'waiting' or state == 'ready' or state == 'running') and 0 or count)
  end
  local text = ('%d/%d'):format(settled, all)
  return (counts.failed or 0) > 0 and ('%s ✗%d'):format(text, counts.failed) or text
end

--- A few cells for a statusline, from what is known: `⬡ 3/12 ✗1 ?2`. Never asks the daemon; '' where nothing is going on.
---@return string
function M.statusline()
  local workspace = package.loaded['graphd.workspace']
  local session = workspace and workspace.known_here()
  if not session or session.state == 'idle' then
    return ''
  end
  local parts = { SIGNS[session.state] }
  local live = session.mirror:live()
  for index = 1, math.min(#live, 2) do
    table.insert(parts, of_graph(live[index]))
  end
  if #live > 2 then
    table.insert(parts, ('+%d'):format(#live - 2))
  end
  local asks = #session.mirror:asks()
  if asks > 0 then
    table.insert(parts, ('?%d'):format(asks))
  end
  return #parts > 0 and '⬡ ' .. table.concat(parts, ' ') or ''
end

--- The graphs of a workspace as they are known now, for a configuration of one's own: headers, nodes by slug, asks.
---@param root? string
---@return table<string, graphd.nvim.Held>
function M.graphs(root)
  local workspace = require('graphd.workspace')
  local session = workspace.known(root or workspace.root_of())
  return session and session.mirror.graphs or {}
end

return M
