--- `User` autocommands for the person's own configuration: what changed, without a look at the daemon.
local t = require('graphd.text').t

local M = {}

local function fire(pattern, facts)
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = facts })
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
      if facts == 'failed' then
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
