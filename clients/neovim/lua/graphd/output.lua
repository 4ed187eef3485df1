--- What a node printed, in a window that goes on with it; and its result.
local sheet = require('graphd.sheet')
local t = require('graphd.text').t

local M = {}

--- Text for a buffer: no colours of terminals, and of a line that was written over only its last state.
local function plain(text)
  text = text:gsub('\27%[[%d;?]*[ -/]*[@-~]', ''):gsub('\27%].-[\7\27]\\?', ''):gsub('\r\n', '\n')
  return (text:gsub('[^\n]*\r([^\n])', '%1'):gsub('\r', ''))
end

local function title_of(target, attempt, says)
  local name = attempt and ('%s@%d'):format(target.node, attempt) or target.node
  return says and ('%s · %s'):format(name, says) or name
end

--- A buffer with its window. `leave` is called when it is gone.
local function open_window(session, target, title, footer, leave)
  local facts = { root = session.root, graph = target.graph, node = target.node, attempt = target.attempt }
  local buffer = sheet.new('graphd-output', facts)
  vim.bo[buffer].bufhidden = 'wipe'
  local window = sheet.float(buffer, { title = title, footer = footer })
  vim.wo[window].wrap = true
  local function close()
    sheet.close(window)
  end
  sheet.keys(buffer, { q = close, ['<Esc>'] = close })
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buffer, once = true, callback = leave })
  return buffer, window
end

local function retitle(window, title, footer)
  if vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_set_config(window, {
      title = (' %s '):format(title),
      footer = (' %s '):format(footer),
      footer_pos = 'right',
    })
  end
end

-- ---- what it prints --------------------------------------------------------------------------------------------------

local SIGNS = { tool = '▸ ', ask = '? ', plan = '☰ ', usage = 'Σ ' }

--- One item as text. What an agent thinks, does and asks stands on lines of its own.
local function said(item)
  local text = plain(item.text or '')
  local sign = SIGNS[item.kind]
  if not sign then
    return text
  end
  return ('\n%s%s\n'):format(
    sign,
    item.tool and text ~= '' and item.tool .. ': ' .. text or item.tool or text
  )
end

---@class graphd.nvim.Follower
local Follower = {}
Follower.__index = Follower

--- Whether the window stands at the end: only then does it move on with the text.
function Follower:_is_at_end()
  local window = self.window
  return vim.api.nvim_win_is_valid(window)
    and vim.api.nvim_win_get_cursor(window)[1] >= vim.api.nvim_buf_line_count(self.buffer)
end

function Follower:_add(text)
  if text == '' or not vim.api.nvim_buf_is_valid(self.buffer) then
    return
  end
  local follows = self:_is_at_end()
  self.tail = self.tail .. text
  local lines = vim.split(self.tail, '\n', { plain = true })
  vim.bo[self.buffer].modifiable = true
  vim.api.nvim_buf_set_lines(self.buffer, self.whole, -1, false, lines)
  vim.bo[self.buffer].modifiable = false
  self.whole = self.whole + #lines - 1
  self.tail = lines[#lines]
  if follows then
    vim.api.nvim_win_set_cursor(self.window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
  end
end

function Follower:_label(says)
  retitle(self.window, title_of(self.target, self.attempt, says), t('q: close'))
end

--- Reads on from the cursor until nothing more is there. A cursor that a new daemon does not know begins anew.
function Follower:read()
  if self.is_reading or self.is_gone then
    self.is_stale = true
    return
  end
  self.is_reading, self.is_stale = true, false
  local params = vim.tbl_extend('force', self.asked, { cursor = self.cursor, attempt = self.attempt })
  self.session:call('workgraph/observe', params, function(trouble, result)
    self.is_reading = false
    if self.is_gone then
      return
    elseif trouble then
      return self:_failed(trouble)
    end
    self.cursor, self.attempt, self.is_live = result.cursor, result.attempt, result.live
    self:_add(table.concat(vim.tbl_map(said, result.items)))
    self:_label(result.live and t('running') or t('ended'))
    if #result.items > 0 or self.is_stale then
      self:read()
    end
  end)
end

function Follower:_failed(trouble)
  local code = type(trouble.data) == 'table' and trouble.data.code
  if code == 'cursorInvalid' and self.cursor then
    self.cursor, self.whole, self.tail = nil, 0, ''
    return self:read()
  end
  self:_label(trouble.message)
end

--- Follows what a node prints, over restarts of the daemon too.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.follow(session, target)
  local follower = setmetatable({
    session = session,
    target = target,
    attempt = target.attempt,
    asked = { graph = target.graph, node = target.node },
    whole = 0,
    tail = '',
  }, Follower)
  local unfollow, forget
  local title = title_of(target, target.attempt)
  follower.buffer, follower.window = open_window(session, target, title, t('q: close'), function()
    follower.is_gone = true
    unfollow()
    forget()
  end)
  unfollow = session:follow(target.graph, target.node)
  forget = session:listen(function(event, facts)
    local is_ours = event == 'state' and facts == 'live'
      or event == 'output' and facts.graph == target.graph and facts.node == target.node
      or event == 'changed' and facts.graph == target.graph
    if is_ours and (follower.is_live ~= false or event == 'state') then
      follower:read()
    end
  end)
  follower:read()
end

-- ---- the result ------------------------------------------------------------------------------------------------------

--- The whole result, piece by piece.
local function read_result(session, params, offset, pieces, done)
  local asked = vim.tbl_extend('force', params, { offset = offset, limit = 1048576 })
  session:call('workgraph/output', asked, function(trouble, result)
    if trouble then
      return done(trouble)
    end
    table.insert(pieces, result.text)
    if result.next < result.total and result.next > offset then
      return read_result(session, params, result.next, pieces, done)
    end
    done(nil, table.concat(pieces), result.mediaType)
  end)
end

local FILETYPES = { ['application/json'] = 'json', ['text/markdown'] = 'markdown' }

--- The result of a node; what it printed, where it has none.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.result(session, target)
  local params = { graph = target.graph, node = target.node, attempt = target.attempt }
  read_result(session, params, 0, {}, function(trouble, text, media)
    local code = trouble and type(trouble.data) == 'table' and trouble.data.code
    if code == 'notFound' and target.graph then
      return M.follow(session, target)
    elseif trouble then
      return require('graphd.say').refused(trouble)
    end
    local title = title_of(target, target.attempt, t('result'))
    local buffer = open_window(session, target, title, t('q: close'), function() end)
    sheet.draw(buffer, vim.split((plain(text):gsub('\n$', '')), '\n', { plain = true }))
    vim.bo[buffer].syntax = FILETYPES[media] or ''
  end)
end

--- What there is to see of a node: its output while it runs, its result afterwards.
---@param session graphd.nvim.Session
---@param target graphd.nvim.Target
function M.open(session, target)
  local held = session.mirror.graphs[target.graph]
  local node = held and held.nodes[target.node]
  local is_done = node and node.output and node.state ~= 'running' and not target.attempt
  return is_done and M.result(session, target) or M.follow(session, target)
end

return M
