#include "commands/affected.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "description/outbox.hpp"

namespace stela::tool {

Mode outbox_mode(const Arguments& arguments) {
  return arguments.has("--dry-run") ? Mode::dry_run : Mode::carry_out;
}

int report_affected(Invocation& call, const Affected& affected, const Deed& deed) {
  const bool dry = outbox_mode(call.arguments) == Mode::dry_run;
  if (call.out.is_json()) {
    print_json(call.out, description::affected, affected, {{"dry_run", dry}});
    return affected.next ? interrupted : done;
  }
  std::string text =
      counted(affected.messages, "message") + " of " + counted(affected.streams, "stream") + ' ';
  call.out.line(text.append(dry ? deed.planned : deed.done).append("."));
  if (affected.followers > 0) {
    text = counted(affected.followers, "message") + " parked after it in its stream ";
    call.out.line(text.append(dry ? retrying.planned : retrying.done).append("."));
  }
  if (affected.changed > 0) {
    call.out.line(counted(affected.changed, "message") +
                  " left alone: retried, discarded or parked again since.");
  }
  if (!affected.next) return done;
  call.out.line("Interrupted; the same with --from " + std::to_string(affected.next->value()) +
                " continues.");
  return interrupted;
}

int asked(Invocation& call, const Deed& deed, std::string_view question,
          const std::function<Affected(Mode)>& operate) {
  const Affected planned = operate(Mode::dry_run);
  if (planned.next) return interrupted;
  if (outbox_mode(call.arguments) == Mode::dry_run) return report_affected(call, planned, deed);
  std::string text = std::string{question} + ' ' + counted(planned.messages, "message") + '?';
  if (planned.followers > 0) {
    text += ' ' + counted(planned.followers, "message") +
            " parked after it in its stream will be retried.";
  }
  if (!call.confirm(text)) return failed;
  return report_affected(call, operate(Mode::carry_out), deed);
}

}  // namespace stela::tool
