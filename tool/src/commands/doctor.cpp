#include "commands/doctor.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "session.hpp"

#include <stela/eventstore/catalogue.hpp>
#include <stela/framework/codec/json_writer.hpp>

#include <sqlite3.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/vfs.h>

#include <array>
#include <filesystem>

namespace stela::tool {
namespace {

enum class Finding : std::uint8_t { fine, warning, bad };

/// Collects findings, and prints each as it comes.
class Examination {
 public:
  explicit Examination(Output& out) : out_{out} {}

  void fine(std::string_view what, const std::string& text) { add(Finding::fine, what, text, ""); }
  void warn(std::string_view what, const std::string& text, const std::string& advice) {
    add(Finding::warning, what, text, advice);
  }
  void bad(std::string_view what, const std::string& text, const std::string& advice) {
    add(Finding::bad, what, text, advice);
  }
  bool is_well() const noexcept { return bad_ == 0; }

 private:
  void add(Finding finding, std::string_view what, const std::string& text,
           const std::string& advice) {
    constexpr std::array names{"ok", "warning", "bad"};
    const char* name = names[static_cast<std::size_t>(finding)];
    if (finding == Finding::bad) ++bad_;
    if (out_.is_json()) {
      std::string object;
      json::ObjectWriter{object}
          .add("check", what)
          .add("state", name)
          .add("finding", in_one_line(text))
          .add("advice", in_one_line(advice))
          .close();
      return out_.json(object);
    }
    std::string line{name};
    line.append(9 - line.size(), ' ').append(what).append(": ").append(in_one_line(text));
    out_.line(line);
    if (!advice.empty()) out_.line("         → " + in_one_line(advice));
  }

  Output& out_;
  int bad_ = 0;
};

void look_at_sqlite(Examination& examination) {
  const int version = sqlite3_libversion_number();
  const std::string text = std::string{"version "} + sqlite3_libversion();
  // https://sqlite.org/wal.html: a reset of the log beside a commit could lose that commit.
  if (version < 3'051'003) {
    examination.warn("SQLite", text + " can lose a commit when the log is reset beside it",
                     "Stela's own writers exclude that with a lock; let nobody else write to this "
                     "file, or use SQLite 3.51.3 or newer");
  } else {
    examination.fine("SQLite", text);
  }
}

void look_at_file(Examination& examination, const std::string& path) {
  struct statfs system {};
  if (statfs(path.c_str(), &system) == 0) {
    constexpr std::array<long, 4> remote{0x6969, 0xff534d42, 0x517b, 0xfe534d42};
    const bool is_remote =
        std::find(remote.begin(), remote.end(), static_cast<long>(system.f_type)) != remote.end();
    if (is_remote) {
      examination.bad("file locks", "the file lies on a network file system",
                      "move it to a local disk: locks over the network can't be relied on");
    } else {
      examination.fine("file locks", "the file lies on a local file system");
    }
  }
  std::error_code error;
  const auto log_size = std::filesystem::file_size(path + "-wal", error);
  if (!error && log_size > 256U * 1024 * 1024) {
    examination.warn("write-ahead log",
                     "it has grown to " + in_bytes(static_cast<std::int64_t>(log_size)),
                     "some reader holds a transaction open for long: end it");
  } else {
    examination.fine("write-ahead log",
                     error ? "empty" : in_bytes(static_cast<std::int64_t>(log_size)));
  }
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) != 0) return;
  const auto free =
      static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
  if (free < std::int64_t{256} * 1024 * 1024) {
    examination.bad("space", in_bytes(free) + " left on the disk",
                    "make room: appends fail when it is full, and nothing is lost");
  } else {
    examination.fine("space", in_bytes(free) + " left on the disk");
  }
}

void look_at_clock(Examination& examination, sqlite::Store& store) {
  timex clock{};
  if (adjtimex(&clock) == TIME_ERROR) {
    examination.warn("clock", "the host's clock isn't kept in time", "run chrony or timesyncd");
  } else {
    examination.fine("clock", "it is kept in time");
  }
  const GlobalSequence last = store.last_sequence();
  for (const StoredEvent& event : store.read_at({{last}})) {
    const auto ahead = event.recorded_at - system_clock().now();
    if (ahead <= std::chrono::seconds{5}) continue;
    examination.bad("clock", "the last event was recorded " + in_words(ahead) + " from now",
                    "set the clock of this host, or of the one that appended it");
  }
}

void look_at_participants(Examination& examination, const App& app, sqlite::Store& store) {
  for (const auto& required : sqlite::required_participants(store)) {
    const bool known =
        required.name == "outbox" && find_partitioner(app, required.detail) != nullptr;
    const std::string text = required.name + " (" + required.detail + ") takes part in appends";
    if (known) {
      examination.fine("participants", text);
    } else {
      examination.warn("participants", text + ", and this tool doesn't know it",
                       "append with the application itself, or with the tool built into it");
    }
  }
}

int doctor(Invocation& call) {
  Examination examination{call.out};
  look_at_sqlite(examination);
  Session session{call};
  sqlite::Store& store = session.store();
  examination.fine("database", std::to_string(store.last_sequence().value()) + " events, " +
                                   std::string{to_string(store.conventions().codec)} +
                                   ", durability " + std::string{to_string(store.durability())});
  look_at_file(examination, store.path());
  look_at_clock(examination, store);
  look_at_participants(examination, call.app, store);
  return examination.is_well() ? done : failed;
}

}  // namespace

Command doctor_command() {
  return {.path = "doctor",
          .summary = "looks for what may be wrong, and says what to do",
          .about = "Exit code 1 if something is bad.",
          .options = {db_option},
          .examples = {{"when something is odd", "doctor --db shop.db"}},
          .run = doctor};
}

}  // namespace stela::tool
