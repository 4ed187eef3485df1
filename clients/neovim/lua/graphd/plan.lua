--- What a changed file would do to its running graph: shown before it happens, accepted or dismissed with a key.
local t = require('graphd.text').t

local M = {}

---@type string?
local shown

--- Whether a proposal is on the screen, where it can be accepted.
---@param proposal string
---@return boolean
function M.is_shown(proposal)
  return shown == proposal
end

---@param diff graphd.PlanDiff
---@return string[], graphd.nvim.Span[]
function M.lines(diff)
  local lines, spans = {}, {}
  local function add(sign, group, text)
    table.insert(lines, (' %s %s'):format(sign, text))
    table.insert(spans, { line = #lines - 1, from = 1, to = #lines[#lines], group = group })
  end
  for _, node in ipairs(diff.added or {}) do
    add('+', 'GraphdAdded', node)
  end
  for _, one in ipairs(diff.changed or {}) do
    add('~', 'GraphdChanged', ('%s: %s'):format(one.node, table.concat(one.fields, ', ')))
  end
  for _, one in ipairs(diff.removed or {}) do
    add('-', 'GraphdRemoved', ('%s: %s'):format(one.node, one.reason))
  end
  for _, one in ipairs(diff.stopped or {}) do
    add(
      '◼',
      'GraphdPaused',
      t('{node} is stopped first, then {state}', { node = one.node, state = one['then'] })
    )
  end
  for _, one in ipairs(diff.moved or {}) do
    add(
      '→',
      'GraphdReady',
      t('{node}: {origin}, then {state}', { node = one.node, origin = one.origin, state = one.state })
    )
  end
  for _, node in ipairs(diff.kept or {}) do
    add('·', 'GraphdWaiting', t('{node} is done, and stays', { node = node }))
  end
  return lines, spans
end

---@param session graphd.nvim.Session
---@param result graphd.MutationResult The answer of `workgraph/apply`.
function M.show(session, result)
  local lines, spans = M.lines(result.diff or {})
  local keys = t('a: accept   d: dismiss   q: later')
  local target = { graph = result.graph }
  local title = t('What this does to the running graph')
  local buffer, window = require('graphd.reading').show(session, target, title, lines, spans, nil, keys)
  shown = result.proposal
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buffer,
    once = true,
    callback = function()
      shown = nil
    end,
  })
  local function settle(verb)
    return function()
      require('graphd.sheet').close(window)
      require('graphd.verbs').settle(session, verb, target, result.proposal)
    end
  end
  require('graphd.sheet').keys(buffer, { a = settle('accept'), d = settle('dismiss') })
end

return M
