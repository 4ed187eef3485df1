--- `User` autocommands for the person's own configuration: what changed, without a look at the daemon.
local t = require('graphd.text').t

local M = {}

local function fire(pattern, facts)
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = facts })
end

--- A daemon of another time is worked with as far as both go; it is said once.
local function check_protocol(session)
  local program = require('graphd.program')
  local spoken, range = session.facts.protocol, program.PROTOCOL
  if spoken and (spoken < range.lowest or spoken > range.highest) then
    local says = { spoken = spoken, lowest = range.lowest, highest = range.highest }
    local said = t('protocol {spoken}; this client speaks {lowest} to {highest}', says)
    vim.notify_once('graphd: ' .. said, vim.log.levels.WARN)
  end
end

---@param session graphd.nvim.Session
function M.watch(session)
  session:listen(function(event, facts)
    if event == 'changed' then
      local header = facts.header
      fire('GraphdChanged', {
        root = session.root,
        graph = facts.graph,
        rev = facts.rev,
        operation = facts.operation,
        status = header and header.status,
        counts = header and header.counts,
        cleared = facts.cleared ~= nil,
      })
    elseif event == 'state' then
      if facts == 'live' then
        check_protocol(session)
      elseif facts == 'failed' then
        require('graphd.say').warn(t('{reason}; to connect again: {command}', {
          reason = session.reason,
          command = ':Graphd restart',
        }))
      end
      fire('GraphdState', { root = session.root, state = facts })
    else
      return
    end
    vim.cmd.redrawstatus({ bang = true })
  end)
end

return M
