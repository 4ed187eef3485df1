--- Answers to read: why a node is where it is, what it changed, the graphs in a few lines.
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

--- Shows lines in a window; `q` closes it.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param title string
---@param lines string[]
---@param spans? graphd.nvim.Span[]
---@param filetype? string
---@param footer? string What its keys do.
---@return integer, integer
function M.show(session, target, title, lines, spans, filetype, footer)
  local facts = { root = session.root, graph = target.graph, node = target.node }
  local buffer = sheet.new(filetype or 'graphd-reading', facts)
  vim.bo[buffer].bufhidden = 'wipe'
  sheet.draw(buffer, lines, spans)
  local width = math.max(sheet.width(lines) + 1, vim.fn.strdisplaywidth(title) + 2, 40)
  local window =
    sheet.float(buffer, { title = title, footer = footer or t('q: close'), width = width, height = #lines })
  vim.wo[window].wrap = true
  local function close()
    sheet.close(window)
  end
  sheet.keys(buffer, { q = close, ['<Esc>'] = close })
  return buffer, window
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param reasons graphd.Why[]
function M.why(session, target, reasons)
  local lines, spans = {}, {}
  for _, reason in ipairs(reasons) do
    table.insert(lines, reason.detail)
    if reason.next ~= '' then
      table.insert(lines, '  ' .. reason.next)
      table.insert(spans, { line = #lines - 1, from = 2, to = 2 + #reason.next, group = 'GraphdKey' })
    end
  end
  M.show(
    session,
    target,
    t('Why {node}', { node = target.node }),
    #lines > 0 and lines or { t('nothing to say') },
    spans
  )
end

---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
---@param result graphd.DiffResult
function M.diff(session, target, result)
  if result.patch == '' then
    return require('graphd.say').tell(t('{node} changed nothing', { node = target.node }))
  end
  local lines = vim.split((result.patch:gsub('\n$', '')), '\n', { plain = true })
  local beside = vim.tbl_map(function(one)
    return ('%s@%d'):format(one.node, one.attempt)
  end, result.shared or {})
  if #beside > 0 then
    table.insert(
      lines,
      1,
      '# ' .. t('worked there at the same time: {names}', { names = table.concat(beside, ', ') })
    )
  end
  M.show(session, target, t('What {node} changed', { node = target.node }), lines, nil, 'diff')
end

--- The graphs of the workspace, one a line.
---@param session graphd.nvim.Session
function M.status(session)
  session:call('workgraph/tree', nil, function(trouble, rows)
    if trouble then
      return require('graphd.say').refused(trouble)
    elseif #rows == 0 then
      return require('graphd.say').tell(t('Nothing has run here yet.'))
    end
    local chunks = {}
    local looks, icons = require('graphd.looks'), require('graphd.config').get().icons
    looks.link()
    for number, row in ipairs(rows) do
      table.insert(
        chunks,
        { (number > 1 and '\n' or '') .. looks.sign(row.icon, row.state, icons), looks.group(row.state) }
      )
      table.insert(chunks, { (' %s  '):format(row.label) })
      table.insert(chunks, { row.description, 'GraphdDescription' })
    end
    vim.api.nvim_echo(chunks, false, {})
  end)
end

return M
