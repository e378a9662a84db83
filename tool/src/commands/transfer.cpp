// export, import.
#include "cli/exit.hpp"
#include "cli/input_file.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "database/partial_file.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>
#include <stela/outbox/care.hpp>
#include <stela/projections/timers.hpp>
#include <stela/projections/transfer.hpp>

#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <new>

namespace stela::tool {
namespace {

/// The operand; "-" if there is none.
std::string file_of(const Arguments& arguments) {
  return arguments.operands().empty() ? "-" : arguments.operands().front();
}

/// The state that other modules keep beside the events.
struct States {
  std::unique_ptr<StateTransfer> outbox = outbox_state();
  std::unique_ptr<StateTransfer> projections = projection_state();
  std::array<StateTransfer*, 2> all{outbox.get(), projections.get()};
};

TransferOptions options_of(ProgressBar& bar, const Signals& signals, const States& states) {
  return {.progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
          .stop = signals.token(),
          .states = states.all};
}

/// `write` returns whether it finished. The file gets the read permissions of the store's file; for
/// a store on a server, only the user may read it.
bool write_to_file(const std::string& path, const StoreSession& session,
                   FunctionRef<bool(std::ostream&)> write) {
  const auto refuse = [&] {
    throw Exit{failed, "'" + path + "' already exists; choose another name, or remove it"};
  };
  if (std::filesystem::exists(path)) refuse();
  database::PartialFile partial{path};
  __gnu_cxx::stdio_filebuf<char> buffer{dup(partial.descriptor()),
                                        std::ios::out | std::ios::binary};
  std::ostream file{&buffer};
  const bool finished = write(file);
  if (!file || buffer.close() == nullptr) {
    throw Exit{failed, "'" + partial.path() + "' can't be written"};
  }
  if (!finished) return false;
  if (!session.place().is_on_server()) partial.take_rights_of(session.name());
  if (!partial.publish()) refuse();
  return true;
}

/// Lines of JSON for a terminal, which would obey some of their characters. Threads: one at a time.
class TerminalLines final : public std::streambuf {
 public:
  explicit TerminalLines(Output& out) : out_{out} {}

 private:
  int_type overflow(int_type c) override {
    const char one = traits_type::to_char_type(c);
    if (!traits_type::eq_int_type(c, traits_type::eof())) xsputn(&one, 1);
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    line_.append(text, static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (std::size_t end = line_.find('\n'); end != std::string::npos;
         end = line_.find('\n', begin)) {
      out_.json(std::string_view{line_}.substr(begin, end - begin));
      begin = end + 1;
    }
    line_.erase(0, begin);
    return size;
  }
  int sync() override {
    out_.flush();
    return 0;
  }

  Output& out_;
  std::string line_;
};

bool write_to_stdout(Output& out, FunctionRef<bool(std::ostream&)> write) try {
  if (out.is_terminal()) {
    TerminalLines lines{out};
    std::ostream terminal{&lines};
    return write(terminal);
  }
  const bool finished = write(std::cout);
  if (!std::cout.flush()) throw StoreFailed{"stdout can't be written"};
  return finished;
} catch (const StoreFailed&) {
  if (Output::is_reader_gone()) throw ReaderGone{};
  throw;
}

void tell_of(const UnreadableEvents& lost, ProgressBar& bar, Output& out) {
  bar.clear();
  const std::string first = std::to_string(lost.first.value());
  out.note((lost.first == lost.last
                ? "event " + first
                : "events " + first + " to " + std::to_string(lost.last.value())) +
           ": " + in_one_line(lost.why));
}

AllQuery query_of_export(const Arguments& arguments) {
  const bool filters = arguments.has("--since") || arguments.has("--until") ||
                       arguments.has("--category") || arguments.has("--type");
  if (filters && arguments.has("--skip-damaged")) {
    throw Misuse{"--skip-damaged goes with --from and --to, and with no other selection"};
  }
  const bool selects = filters || arguments.has("--from") || arguments.has("--to") ||
                       arguments.has("--skip-damaged");
  if (selects && arguments.has("--whole")) throw Misuse{"--whole goes with no selection"};
  return EventSelection{arguments}.query;
}

/// A warning for exports of events alone.
void tell_of_timers(Invocation& call, Store& store) {
  std::int64_t timers = 0;
  bool is_lower_bound = false;
  for (const ProcessStatus& one : TimerOperations{store}.processes()) {
    timers += one.pending + one.unknown + one.parked;
    is_lower_bound |= one.is_pending_lower_bound;
  }
  if (timers == 0) return;
  call.out.note("Left out: " + std::string{is_lower_bound ? "more than " : ""} +
                counted(timers, "timer") + "; export --whole takes them along.");
}

int export_events(Invocation& call) {
  const AllQuery query = query_of_export(call.arguments);
  const std::string path = file_of(call.arguments);
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true, .reads_durably = true}};
  ProgressBar bar{call.out, "events"};
  std::ios::sync_with_stdio(false);
  const States states;
  const auto options = options_of(bar, signals, states);
  std::int64_t written = 0;
  std::int64_t lost = 0;
  const auto write = [&](std::ostream& out) {
    if (call.arguments.has("--whole")) {
      const auto result = export_store(session.store(), out, options);
      written = result.events;
      return result.finished;
    }
    if (!call.arguments.has("--skip-damaged")) {
      const auto result = export_events(session.store(), out, query, options);
      written = result.events;
      return result.finished;
    }
    const auto result = salvage_events(
        session.store(), out,
        [&](const UnreadableEvents& unreadable) { tell_of(unreadable, bar, call.out); },
        {.from = query.from, .to = query.to, .progress = options.progress, .stop = options.stop});
    written = result.events;
    lost = result.lost;
    return result.finished;
  };
  const bool finished =
      path == "-" ? write_to_stdout(call.out, write) : write_to_file(path, session, write);
  bar.clear();
  if (!finished) return interrupted;
  call.out.note(counted(written, "event") + " exported" +
                (lost > 0 ? ", " + counted(lost, "event") + " can't be read." : "."));
  const bool is_of_events = !call.arguments.has("--whole") && !call.arguments.has("--skip-damaged");
  if (is_of_events) tell_of_timers(call, session.store());
  return lost > 0 ? failed : done;
}

/// Describes the import of a whole store.
std::string states_in_words(const ImportResult& result) {
  if (result.append_ids + result.rows == 0) return {};
  return " Also " + counted(result.append_ids, "append id") + " and " +
         counted(result.rows, "row") + " of the outbox and of processes.";
}

void tell_hold(Invocation& call, Store& store) {
  for (const TimerHold& hold : TimerOperations{store}.holds()) {
    if (hold.reason != HoldReason::imported) continue;
    call.out.note("No timer fires: " + hold.detail + ". 'timers resume' ends that.");
  }
}

int import_events(Invocation& call) {
  const std::string path = file_of(call.arguments);
  const Signals signals{call};
  StoreSession session{call};
  std::ifstream file;
  if (path != "-") file = open_to_read(path, "'" + path + "'");
  ProgressBar bar{call.out, "events"};
  std::ios::sync_with_stdio(false);
  const States states;
  ImportResult result;
  try {
    result = import_store(session.store(), path == "-" ? std::cin : file,
                          options_of(bar, signals, states));
  } catch (const UsageError& e) {
    // The command line is right, but the lines are not.
    throw Exit{failed, std::string{e.what()} + "; the store's last event is " +
                           std::to_string(session.store().last_sequence().value())};
  } catch (const Error& e) {
    bar.clear();
    const bool passes = e.is_retryable() || e.code() == ErrorCode::store_full;
    throw Exit{
        failed,
        e.what() + std::string{"; import the same again, and it continues"} +
            (passes ? "" : "; if it says this again, the file is damaged: take another export")};
  } catch (const std::bad_alloc&) {
    bar.clear();
    throw Exit{failed, "out of memory; import the same again, and it continues"};
  }
  bar.clear();
  print_result(call.out,
               {{"imported", result.imported},
                {"skipped", result.skipped},
                {"last_sequence", result.last},
                {"append_ids", result.append_ids},
                {"rows", result.rows}},
               counted(result.imported, "event") + " imported, " + in_digits(result.skipped) +
                   (result.skipped == 1 ? " was" : " were") + " there already." +
                   states_in_words(result));
  tell_hold(call, session.store());
  if (result.finished) return done;
  call.out.note("Interrupted: import the same again, and it continues.");
  return interrupted;
}

}  // namespace

std::vector<Command> transfer_commands() {
  return {
      {.path = "export",
       .summary = "Export events as JSON Lines",
       .about = "Without --whole, append ids, the outbox, checkpoints and timers are left out. "
                "With --skip-damaged, damaged events are named on stderr, and the exit code is 1 "
                "if there were any. With --whole, another database can take this one's place: the "
                "export also has the store's id, the append ids, the outbox with how far each "
                "partition is at the broker, and the checkpoints and timers of reactions and "
                "processes. Stop all writers, workers and runners before, and don't start them on "
                "this database again.",
       .operands = {{"FILE", "the output file (default: stdout)", false}},
       .options = {db_option,
                   from_option,
                   to_option,
                   since_option,
                   until_option,
                   category_option,
                   type_option,
                   {"--whole", "", "all that another database needs to take the place of this one"},
                   {"--skip-damaged", "", "skip damaged events of a damaged store"}},
       .examples = {{"export all events", "export --db shop.db shop.jsonl"},
                    {"move to PostgreSQL",
                     "export --db shop.db --whole | stela import --db postgresql://app@db/shop"}},
       .run = export_events},
      {.path = "import",
       .summary = "Import exported events unchanged",
       .about =
           "Existing events are compared and skipped, so an import can be repeated. The export "
           "of a whole store goes into an empty database, which takes its place. Its timers are "
           "held until 'timers resume'.",
       .operands = {{"FILE", "the exported file (default: stdin)", false}},
       .options = {db_option},
       .examples = {{"import into a new store", "import --db copy.db shop.jsonl"}},
       .run = import_events},
  };
}

}  // namespace stela::tool
