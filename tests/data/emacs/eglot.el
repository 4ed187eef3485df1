;;; eglot.el --- a whole session of a real Emacs against the daemon, in batch  -*- lexical-binding: t -*-

;; Prints one line per step that went well and DONE at the end; the first that does not ends Emacs with an error.
;; The lines of docs/how-to/editors.md were evaluated before: they alone say which program serves which mode, and when.
;; WORKFLOW comes by the environment.

(require 'cl-lib)
(require 'eglot)
(require 'flymake)

(setq eglot-sync-connect t
      eglot-confirm-server-initiated-edits nil
      flymake-no-changes-timeout 0.1
      make-backup-files nil)

(defvar told nil "What came as workgraph/changed, newest first.")
(cl-defmethod eglot-handle-notification
  (_server (_method (eql workgraph/changed)) &key operation graph rev &allow-other-keys)
  (push (list operation graph rev) told))

(defun until (what check)
  "Wait until CHECK gives something, which it returns; WHAT names it."
  (let ((deadline (+ (float-time) 30)) found)
    (while (not (setq found (funcall check)))
      (when (> (float-time) deadline) (error "Never came: %s" what))
      (accept-process-output nil 0.05)
      (sit-for 0.02))
    found))

(defun ok (step &rest args)
  "Say that STEP, a format with ARGS, went well."
  (princ (concat "OK " (apply #'format step args) "\n")))

(find-file (getenv "WORKFLOW"))
(unless (derived-mode-p 'yaml-mode) (error "Opened in %s" major-mode))
(run-hooks 'post-command-hook) ; where eglot-ensure connects; batch has no command loop
(defvar server (or (eglot-current-server) (error "Nothing connected")))
(ok "connected to %s" (plist-get (eglot--server-info server) :name))

;; diagnostics
(flymake-mode 1)
(flymake-start)
(let ((wrong (until "diagnostics" #'flymake-diagnostics)))
  (ok "diagnostic at %s" (buffer-substring (flymake-diagnostic-beg (car wrong)) (flymake-diagnostic-end (car wrong)))))

;; completion inside the half-typed need
(goto-char (point-min))
(search-forward "wai")
(search-forward "[wa")
(let* ((found (eglot-completion-at-point))
       (all (all-completions "" (nth 2 found))))
  (unless (cl-some (lambda (label) (string-match-p "wait" label)) all) (error "No wait in %S" all))
  (ok "completion"))

;; mend it, and the diagnostic goes
(goto-char (point-min))
(search-forward "[wat")
(replace-match "[wait" t t)
(eglot--signal-textDocument/didChange)
(until "the diagnostic to go" (lambda () (flymake-start) (null (flymake-diagnostics))))
(ok "mended")

;; a run refuses what is not saved
(condition-case refusal
    (progn (jsonrpc-request server :workspace/executeCommand
                            (list :command "graphd.run" :arguments (vector (list :uri (eglot--path-to-uri buffer-file-name)))))
           (error "It ran unsaved text"))
  (jsonrpc-error (ok "unsaved: %s" (alist-get 'jsonrpc-error-code (cdr refusal)))))
(save-buffer)

;; rename over an emoji
(goto-char (point-min))
(search-forward "[wa")
(eglot-rename "hold")
(goto-char (point-min))
(unless (and (search-forward "id: hold" nil t) (search-forward "[hold]" nil t)) (error "Not renamed: %s" (buffer-string)))
(save-buffer)
(ok "renamed")

;; definition
(goto-char (point-min))
(search-forward "[ho")
(xref-find-definitions (xref-backend-identifier-at-point 'eglot))
(unless (string-match-p "id: hold" (thing-at-point 'line)) (error "Not at the definition"))
(ok "definition")

;; the run, followed by our own notifications on the same connection
(jsonrpc-request server :workgraph/subscribe eglot--{})
(defvar made (eglot-execute-command server "graphd.run" (vector (list :uri (eglot--path-to-uri buffer-file-name)))))
(until "the end of the run"
       (lambda () (equal "complete" (plist-get (jsonrpc-request server :workgraph/status (list :graph (plist-get made :graph))) :status))))
(until "a notification" (lambda () told))
(ok "ran")

;; its actions
(let* ((everything (list :start (list :line 0 :character 0) :end (list :line 99 :character 0)))
       (actions (jsonrpc-request server :textDocument/codeAction
                                 (list :textDocument (eglot--TextDocumentIdentifier) :range everything
                                       :context (list :diagnostics [])))))
  (unless (cl-some (lambda (action) (equal "Open output" (plist-get action :title))) actions) (error "No action: %S" actions))
  (ok "actions"))

(eglot-shutdown server)
(ok "shut down")
(princ "DONE\n")
;;; eglot.el ends here
