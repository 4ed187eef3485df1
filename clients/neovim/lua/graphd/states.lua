--- The live state behind each node of a workflow file: the daemon's inlay hints, coloured, where hints are off.
local looks = require('graphd.looks')

local M = {}

local marks = vim.api.nvim_create_namespace('graphd.states')

local function label_of(hint)
  if type(hint.label) == 'string' then
    return hint.label
  end
  return table.concat(vim.tbl_map(function(part)
    return part.value
  end, hint.label))
end

local function draw(buffer, hints, encoding)
  vim.api.nvim_buf_clear_namespace(buffer, marks, 0, -1)
  for _, hint in ipairs(hints) do
    local label = label_of(hint)
    local state = label:match('^[%a ]*%a') or ''
    local group = looks.group((state:gsub(' %d.*', '')))
    local line = vim.api.nvim_buf_get_lines(buffer, hint.position.line, hint.position.line + 1, false)[1]
      or ''
    local column = vim.str_byteindex(line, encoding, hint.position.character, false)
    vim.api.nvim_buf_set_extmark(buffer, marks, hint.position.line, column, {
      virt_text = { { '  ' .. label, group } },
      virt_text_pos = 'inline', -- at the end of a long line it wraps, where `eol` is cut
      hl_mode = 'combine',
      strict = false,
    })
  end
end

--- Neovim takes new hints and goes on showing those that it has drawn meanwhile: the hints are put first, and only then
--- is it told that what it shows is old.
local function hand_over(client, trouble, hints, context)
  vim.lsp.handlers['textDocument/inlayHint'](trouble, hints, context)
  vim.lsp.handlers['workspace/inlayHint/refresh'](nil, nil, { client_id = client.id })
end

--- Asks for the states of a buffer, and draws them; where inlay hints are on, Neovim does.
---@param client vim.lsp.Client
---@param buffer integer
function M.refresh_buffer(client, buffer)
  local is_theirs = vim.lsp.inlay_hint.is_enabled({ bufnr = buffer })
  if is_theirs or not require('graphd.config').get().states then
    vim.api.nvim_buf_clear_namespace(buffer, marks, 0, -1)
  end
  if not is_theirs and not require('graphd.config').get().states then
    return
  end
  local params = {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    range = {
      start = { line = 0, character = 0 },
      ['end'] = { line = vim.api.nvim_buf_line_count(buffer), character = 0 },
    },
  }
  client:request('textDocument/inlayHint', params, function(trouble, hints, context)
    if trouble or not vim.api.nvim_buf_is_loaded(buffer) then
      return
    elseif is_theirs then
      hand_over(client, trouble, hints, context)
    else
      draw(buffer, hints or {}, client.offset_encoding)
    end
  end, buffer)
end

--- The same for all buffers of a client.
---@param client_id integer
function M.refresh(client_id)
  local client = vim.lsp.get_client_by_id(client_id)
  for buffer in pairs(client and client.attached_buffers or {}) do
    M.refresh_buffer(client, buffer)
  end
end

return M
