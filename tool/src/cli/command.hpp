// What commands there are: a table from which parsing, help, completion and manual are made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

class Invocation;

/// `--name` or `--name VALUE`.
struct Option {
  std::string_view name;
  /// How help calls its value; empty for a switch.
  std::string_view value = {};
  std::string_view summary = {};
  /// The setting of the configuration that it sets; empty if it belongs to the command alone.
  std::string_view setting = {};
  bool repeats = false;
  /// What its value can be, for completion: "text|json", or "@partitions", "@projectors" for those
  /// of the database. Empty: the choices of its setting, if it has any.
  std::string_view values = {};
};

/// A word behind the command's name.
struct Operand {
  std::string_view name;
  std::string_view summary;
  bool required = true;
  /// Any number of them; the last of its command.
  bool repeats = false;
  /// As an option's.
  std::string_view values = {};
};

struct Example {
  std::string_view what;
  std::string_view command;
};

struct Command {
  /// "outbox work".
  std::string_view path;
  /// One line, without a full stop.
  std::string_view summary;
  /// More for its own help.
  std::string_view about = {};
  std::vector<Operand> operands = {};
  std::vector<Option> options = {};
  std::vector<Example> examples = {};
  /// What a check for monitoring systems is about: "outbox". Wrong usage of one is UNKNOWN, exit
  /// code 3, as 2 is CRITICAL; empty: it is no check.
  std::string_view checks = {};
  /// Returns the exit code.
  int (*run)(Invocation& invocation) = nullptr;
};

/// Every command, in the order of help.
std::vector<Command> all_commands();

std::vector<Command> outbox_commands();
std::vector<Command> partition_commands();
std::vector<Command> projection_commands();
std::vector<Command> process_commands();
std::vector<Command> timer_commands();
std::vector<Command> inbox_commands();
std::vector<Command> event_commands();
std::vector<Command> privacy_commands();
std::vector<Command> link_commands();
std::vector<Command> stream_commands();
std::vector<Command> snapshot_commands();
std::vector<Command> tag_commands();
std::vector<Command> append_id_commands();
std::vector<Command> database_commands();
std::vector<Command> diagnosis_commands();
std::vector<Command> log_commands();
std::vector<Command> findings_commands();
std::vector<Command> transfer_commands();
std::vector<Command> self_commands();

// Commands with a file of their own.
Command append_command();
Command check_command();
Command doctor_command();
Command enable_command();
Command history_command();
Command projections_history_command();
Command topology_command();
Command retry_command();
Command serve_command();
Command groups_command();
Command discard_command();
Command mcp_command();
Command privacy_export_command();
Command privacy_hold_command();
Command privacy_release_command();
Command privacy_rotate_command();
Command privacy_report_command();
Command privacy_reapply_command();
Command rebuild_command();
Command reconcile_command();
Command replay_command();
Command top_command();
Command work_command();

/// What every command understands.
std::span<const Option> common_options();

/// `--db FILE|URL`, for the commands that need a database.
inline constexpr Option db_option{"--db", "FILE|URL", "the database", "db"};
/// Of the commands that need the keys of personal fields.
inline constexpr Option keys_option{"--keys", "FILE", "the key store of personal fields",
                                    "keys.store"};
inline constexpr Option master_option{"--master", "FILE", "its master key", "keys.master"};
inline constexpr Option erasures_option{"--erasures", "FILE", "its file of erasures",
                                        "keys.erasures"};
inline constexpr Option jetstream_option{"--stream", "NAME", "the JetStream stream", "nats.stream"};
inline constexpr Option prefix_option{"--prefix", "P", "the subject prefix", "nats.prefix"};
inline constexpr Option yes_option{"--yes", "", "don't ask"};
inline constexpr Option dry_run_option{"--dry-run", "", "say what would be done, and do nothing"};

}  // namespace stela::tool
