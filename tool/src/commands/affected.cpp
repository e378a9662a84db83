#include "commands/affected.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "description/outbox.hpp"

namespace stela::tool {

Mode outbox_mode(const Arguments& arguments) {
  return arguments.has("--dry-run") ? Mode::dry_run : Mode::carry_out;
}

int tell_if_interrupted(Invocation& call, const Affected& affected, std::int64_t planned) {
  if (!affected.next && affected.finished) return done;
  std::string rest = "the same again does the rest.";
  if (!call.arguments.operands().empty()) rest = "'outbox list --state parked' lists the rest.";
  if (affected.next) {
    rest = "the same with --from " + std::to_string(affected.next->value()) + " continues.";
  }
  call.out.note("Interrupted after " + in_digits(affected.messages) + " of " +
                counted(planned, "message") + "; " + rest);
  return interrupted;
}

int report_affected(Invocation& call, const Affected& affected, const Deed& deed,
                    std::int64_t planned) {
  const bool dry = outbox_mode(call.arguments) == Mode::dry_run;
  if (call.out.is_json()) {
    print_json(call.out, description::affected, affected, {{"dry_run", dry}});
    return tell_if_interrupted(call, affected, planned);
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
  return tell_if_interrupted(call, affected, planned);
}

int asked(Invocation& call, const Deed& deed, std::string_view question,
          const std::function<Affected(Mode)>& operate) {
  const Affected planned = operate(Mode::dry_run);
  if (planned.next) throw Exit{interrupted, "interrupted while counting; nothing was done"};
  if (outbox_mode(call.arguments) == Mode::dry_run) return report_affected(call, planned, deed);
  std::string text = std::string{question} + ' ' + counted(planned.messages, "message") + '?';
  if (planned.followers > 0) {
    text += ' ' + counted(planned.followers, "message") +
            " parked after it in its stream will be retried.";
  }
  if (!call.confirm(text)) return failed;
  return report_affected(call, operate(Mode::carry_out), deed, planned.messages);
}

}  // namespace stela::tool
