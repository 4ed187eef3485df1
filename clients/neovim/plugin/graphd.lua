-- Only names: nothing of graphd is loaded until one of them is used, or a workflow file is opened.
if vim.g.loaded_graphd then
  return
end
vim.g.loaded_graphd = 1

vim.api.nvim_create_user_command('Graphd', function(call)
  require('graphd.command').run(call.fargs)
end, {
  nargs = '*',
  desc = 'graphd: run, look at and steer graphs of work',
  complete = function(lead, line)
    return require('graphd.command').complete(lead, line)
  end,
})

local VERBS = 'run tree status show output logs why diff pause resume step retry cancel apply asks'
for verb in VERBS:gmatch('%S+') do
  vim.keymap.set('n', ('<Plug>(graphd-%s)'):format(verb), ('<Cmd>Graphd %s<CR>'):format(verb))
end

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  group = vim.api.nvim_create_augroup('graphd', {}),
  pattern = { '*/.agents/workflows/*.yaml', '*/.agents/workflows/*.yml' },
  desc = 'graphd: the language server of workflow files',
  callback = function(event)
    require('graphd.attach').buffer(event.buf)
  end,
})
