// migrate, verify, backup, checkpoint, doctor.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "description/eventstore.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/outbox/care.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/projections/projections.hpp>

#include <array>
#include <filesystem>

namespace stela::tool {
namespace {

template <class Enum, std::size_t Count>
std::optional<Enum> choice_of(const Arguments& arguments, std::string_view option,
                              const std::array<Enum, Count>& choices) {
  const auto text = arguments.text(option);
  if (!text) return std::nullopt;
  std::string known;
  for (const Enum choice : choices) {
    if (*text == to_string(choice)) return choice;
    known.append(known.empty() ? "" : " or ").append(to_string(choice));
  }
  throw Misuse{std::string{option} + " is " + known + ", not '" + in_one_line(*text) + "'"};
}

/// The durability chosen when the file was created. Servers have settings of their own.
std::optional<sqlite::Durability> durability_of(StoreSession& session) {
  if (session.place().is_on_server()) return std::nullopt;
  return sqlite::durability(session.store());
}

/// Opens or creates the store at `place`. True if it existed before.
bool open_or_create(const DatabasePlace& place, DatabasePlace::Opening opening) {
  if (!place.is_on_server()) {
    std::error_code ignored;
    const bool existed = std::filesystem::exists(place.file(), ignored);
    opening.create = true;
    place.open(opening);
    return existed;
  }
  try {
    place.open(opening);
    return true;
  } catch (const NotFound&) {
    opening.create = true;
    place.open(opening);
    return false;
  }
}

int migrate(Invocation& call) {
  if (call.tenant()) throw Misuse{"'tenants migrate' migrates the stores of tenants"};
  const DatabasePlace place = call.place();
  const DatabasePlace::Opening opening{
      .codec =
          choice_of(call.arguments, "--codec", std::array{Codec::json, Codec::portable_binary}),
      .durability = choice_of(call.arguments, "--durability",
                              std::array{sqlite::Durability::full, sqlite::Durability::relaxed}),
      .share_file = call.arguments.has("--share-file")};
  const bool existed = open_or_create(place, opening);
  StoreSession session{call};
  Store& store = session.store();
  if (place.is_on_server()) make_tables(store);
  session.find_outbox();
  const auto durability = durability_of(session);
  std::string text = place.shown() + (existed ? " is up to date" : " was made");
  text.append(": payloads as ").append(to_string(store.conventions().codec));
  if (durability) text.append(", durability ").append(to_string(*durability));
  text += '.';
  print_result(call.out,
               {{"path", session.name()},
                {"made", !existed},
                {"store_id", store.id()},
                {"codec", store.conventions().codec},
                {"durability", durability ? Value{*durability} : Value{}}},
               text);
  return done;
}

void print_problem(Invocation& call, const Problem& problem) {
  if (!call.out.is_json()) return call.out.line(to_string(problem));
  print_json(call.out, description::problem, problem);
}

void print_verified(Invocation& call, const VerifyResult& result) {
  for (const auto& [table, why] : result.unchecked) {
    call.out.line("table " + in_one_line(table) + " not checked: " + in_one_line(why));
  }
  call.out.line(counted(result.events, "event") + " checked, " +
                (result.problems == 0 ? "no problem" : counted(result.problems, "problem")) +
                (result.finished ? "." : "; interrupted: inconclusive."));
}

int verify(Invocation& call) {
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true}};
  ProgressBar bar{call.out, "steps"};
  const auto outbox = outbox_check(session.partitioner());
  const std::array<IntegrityCheck*, 1> checks{outbox.get()};
  const auto result = StoreOperations{session.store()}.verify(
      [&](const Problem& problem) {
        bar.clear();
        print_problem(call, problem);
      },
      {.thorough = call.arguments.has("--thorough"),
       .checks = checks,
       .progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
       .stop = signals.token()});
  bar.clear();
  if (call.out.is_json()) {
    print_json(call.out, description::verified, result);
  } else {
    print_verified(call, result);
  }
  if (signals.stopped()) return interrupted;
  return result.is_sound() ? done : failed;
}

int backup(Invocation& call) {
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true}};
  if (session.place().is_on_server()) {
    throw Exit{failed,
               "this command copies SQLite databases; on PostgreSQL use pg_dump or pg_basebackup, "
               "or 'export'"};
  }
  const std::string& path = call.arguments.operands().front();
  ProgressBar bar{call.out, "pages"};
  const auto result =
      sqlite::backup(session.store(), path,
                     {.progress = [&](const Progress& p) { bar.show(p.stage, p.done, p.total); },
                      .stop = signals.token()});
  bar.clear();
  if (!result.finished) return interrupted;
  print_result(call.out, {{"path", path}, {"bytes", result.bytes}, {"last_sequence", result.last}},
               path + " holds " + counted(result.last.value(), "event") + " in " +
                   in_bytes(result.bytes) + ".");
  return done;
}

std::string checkpoint_in_words(const sqlite::CheckpointResult& result) {
  if (result.complete) return "The write-ahead log is empty.";
  if (result.pages_left == 0) {
    return "Everything is in the database; another connection still uses the write-ahead log.";
  }
  return counted(result.pages_left, "page") +
         " of the write-ahead log can't move to the database yet: another connection reads an "
         "older state.";
}

int checkpoint(Invocation& call) {
  StoreSession session{call};
  if (session.place().is_on_server()) {
    throw Exit{failed, "this command is for SQLite; PostgreSQL makes its checkpoints itself"};
  }
  const auto result = sqlite::checkpoint(session.store());
  print_result(call.out, {{"complete", result.complete}, {"pages_left", result.pages_left}},
               checkpoint_in_words(result));
  return result.complete ? done : failed;
}

}  // namespace

std::vector<Command> database_commands() {
  return {
      {.path = "migrate",
       .summary = "Create or migrate a database",
       .about = "On a server, run it as the role that owns the tables, and grants.sql after it: it "
                "makes the tables of the outbox, of consumers and of projections, too.",
       .options = {db_option,
                   {"--codec", "NAME", "for a new database: json (default) or portable_binary", "",
                    false, "json|portable_binary"},
                   {"--durability", "NAME", "for a new file: full (default) or relaxed", "", false,
                    "full|relaxed"},
                   {"--share-file", "", "add Stela's tables to an application's database"}},
       .examples = {{"a new database", "migrate --db shop.db"},
                    {"on a server", "migrate --db postgresql://app@db1,db2/shop"}},
       .run = migrate},
      {.path = "verify",
       .summary = "Check a database's integrity while it is in use",
       .about =
           "Prints each problem with what to do about it; exit code 1 if there is one. A table "
           "of an application's own that only the application can check, as an index of it "
           "uses its own function or collation, is named as not checked.",
       .options = {db_option, {"--thorough", "", "also compare every index with its table"}},
       .examples = {{"every night", "verify --db shop.db --json"}},
       .run = verify},
      doctor_command(),
      {.path = "backup",
       .summary = "Copy a database while it is in use",
       .about = "For SQLite. Of a store on PostgreSQL, pg_dump and pg_basebackup make copies.",
       .operands = {{"FILE", "the copy; must not exist yet"}},
       .options = {db_option},
       .examples = {{"to another disk", "backup /mnt/backup/shop.db"}},
       .run = backup},
      {.path = "checkpoint",
       .summary = "Move the write-ahead log into the database",
       .about = "For SQLite. Stela does so by itself as the log grows. This command also frees the "
                "log's disk "
                "space. It waits for other connections for up to store.busy_timeout, and appends "
                "wait for it. Exit code 1 if a connection keeps the log from being emptied.",
       .options = {db_option},
       .examples = {{"in a quiet hour", "checkpoint --db shop.db"}},
       .run = checkpoint},
  };
}

}  // namespace stela::tool
