// The table of commands. Parsing, help, completion and the manual are generated from it.
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
  /// The name of its value in help. Empty for a switch.
  std::string_view value = {};
  std::string_view summary = {};
  /// The setting of the configuration that it sets. Empty if only the command uses it.
  std::string_view setting = {};
  bool repeats = false;
  /// Its possible values, for completion: "text|json", or "@partitions" or "@projectors" for those
  /// of the database. Empty: the choices of its setting, if it has any.
  std::string_view values = {};
};

/// A positional argument of a command.
struct Operand {
  std::string_view name;
  std::string_view summary;
  bool required = true;
  /// Accepts any number of words. Only the last operand of a command may.
  bool repeats = false;
  /// As for an option.
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
  /// Further text for the command's own help.
  std::string_view about = {};
  std::vector<Operand> operands = {};
  std::vector<Option> options = {};
  std::vector<Example> examples = {};
  /// The subject of a monitoring check: "outbox". Wrong usage of a check is UNKNOWN, exit code 3,
  /// because 2 is CRITICAL. Empty: it isn't a check.
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
std::vector<Command> tenant_commands();
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

/// The options of every command.
std::span<const Option> common_options();

/// `--db FILE|URL`, for the commands that need a database.
inline constexpr Option db_option{"--db", "FILE|URL", "the database", "db"};
/// For commands that need the keys of personal fields.
inline constexpr Option keys_option{"--keys", "FILE", "the key store of personal fields",
                                    "keys.store"};
inline constexpr Option master_option{"--master", "FILE", "its master key", "keys.master"};
inline constexpr Option erasures_option{"--erasures", "FILE", "its file of erasures",
                                        "keys.erasures"};
inline constexpr Option jetstream_option{"--stream", "NAME", "the JetStream stream", "nats.stream"};
inline constexpr Option prefix_option{"--prefix", "P", "the subject prefix", "nats.prefix"};
inline constexpr Option label_option{
    "--label", "TENANT", "of all tenants, one with a label of its own in the metrics", "", true};
inline constexpr Option yes_option{"--yes", "", "don't ask"};
inline constexpr Option dry_run_option{"--dry-run", "", "say what would be done, and do nothing"};

}  // namespace stela::tool
