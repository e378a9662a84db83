// tenants init, create, list, status, suspend, resume, drop, erase, migrate, adopt, each.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"
#include "store_session.hpp"
#include "tenant_registry.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/projections/operations.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace stela::tool {
namespace {

constexpr Field<Tenant> tenant_fields[] = {
    field<&Tenant::name>("tenant"),
    field<&Tenant::state>("state", {.kind = Kind::word}),
    field<&Tenant::store>("store_id"),
    field<&Tenant::created_at>("created_at"),
    field<&Tenant::since>("changed_at", {.title = "since"}),
    field<[](const Tenant& one) {
      return one.state == TenantState::dropped ? std::optional{one.erase_from} : std::nullopt;
    }>("erase_from_at", {.title = "erase from"}),
    field<&Tenant::reason>("reason", {.kind = Kind::untrusted, .most = 40}),
};
constexpr Description<Tenant> tenant_description{
    tenant_fields, {.table = "tenant state changed_at erase_from_at reason"}};

/// What a tenant's store says of itself.
struct TenantReport {
  Tenant tenant;
  std::int64_t events = 0;
  std::int64_t pending = 0;
  std::int64_t parked = 0;
  /// The lag of the projector that is furthest behind.
  std::int64_t behind = 0;
  /// Why it can't be read, or what stands still.
  std::string error = {};
};

constexpr Field<TenantReport> report_fields[] = {
    field<[](const TenantReport& one) { return one.tenant.name; }>("tenant"),
    field<[](const TenantReport& one) { return one.tenant.state; }>("state", {.kind = Kind::word}),
    field<&TenantReport::events>("events", {.kind = Kind::count}),
    field<&TenantReport::pending>("pending", {.kind = Kind::count}),
    field<&TenantReport::parked>("parked", {.kind = Kind::count}),
    field<&TenantReport::behind>("behind", {.kind = Kind::count}),
    field<&TenantReport::error>("error", {.kind = Kind::untrusted, .most = 60}),
};
constexpr Description<TenantReport> report_description{
    report_fields, {.table = "tenant state events pending parked behind error"}};

TenantReport look_at(Tenants& tenants, const Tenant& tenant, const App& app) try {
  if (tenant.state == TenantState::erasing) {
    return {.tenant = tenant, .error = "its erasure was interrupted; repeat 'tenants erase'"};
  }
  TenantReport report{.tenant = tenant};
  TenantStore open = tenants.use(tenant.name);
  report.events = open->last_sequence().value();
  bool is_refused = false;
  for (const auto& required : StoreOperations{open.store()}.required_participants()) {
    is_refused = is_refused || required.name == "suspended";
    if (required.name == "suspended" && tenant.state == TenantState::active) {
      report.error = "its store refuses appends, " + required.detail + "; 'tenants resume'";
    }
    if (required.name != "outbox") continue;
    const OutboxStatus status = OutboxOperations{
        open.store(),
        {.partitioner = find_partitioner(
             app, required.detail)}}.status();
    report.pending = status.pending;
    report.parked = status.parked;
    for (const PartitionStatus& one : status.partitions) {
      if (one.stopped) report.error = "stopped: " + one.stopped_detail;
      if (one.backing_since) report.error = "backs off: " + one.last_error;
    }
  }
  if (!is_refused && tenant.state != TenantState::active) {
    report.error =
        "its store accepts appends: it was resumed, and the registry is from an older "
        "backup; 'tenants resume' it here, too, or suspend or drop it again";
  }
  for (const ProjectorStatus& one : ProjectionOperations{open.store()}.status()) {
    report.behind = std::max(report.behind, one.lag_events);
    if (one.stopped) report.error = "projector '" + one.name + "' is stopped: " + one.error;
  }
  return report;
} catch (const Error& e) {
  return {.tenant = tenant, .error = e.what()};
}

std::string name_of(const Invocation& call) {
  return call.arguments.operands().front();
}

int print_tenant(Invocation& call, const Tenant& tenant, const std::string& text) {
  if (call.out.is_json()) {
    print_json(call.out, tenant_description, tenant);
  } else {
    call.out.line(text);
  }
  return done;
}

int init(Invocation& call) {
  open_registry(call,
                {.at = call.arguments.required("--at"), .keys = call.arguments.text("--keys-at")});
  print_result(call.out, {{"tenants", call.settings().text("tenants")}},
               "The registry is ready: '" + call.app.name + " tenants create NAME'.");
  return done;
}

int create(Invocation& call) {
  Tenants tenants = open_registry(call, {.create = false});
  for (const std::string& name : call.arguments.operands()) {
    const Tenant made = tenants.create(name);
    // A role that uses the store may not be able to make tables.
    if (!tenants.schema_of(name).empty()) make_tables(tenants.use(name).store());
    print_tenant(call, made, "Tenant '" + name + "' is made.");
  }
  return done;
}

int list(Invocation& call) {
  print_list(call.out, tenant_description, open_registry(call, {.create = false}).list());
  return done;
}

int status(Invocation& call) {
  Tenants tenants = open_registry(call, {.create = false});
  Listing<TenantReport> listing{call.out, report_description};
  std::int64_t asked = 0;
  std::int64_t answered = 0;
  std::int64_t still = 0;
  for (const Tenant& tenant : tenants.list()) {
    if (tenant.state == TenantState::erased) continue;
    const TenantReport report = look_at(tenants, tenant, call.app);
    ++asked;
    if (report.events > 0 || report.error.empty()) ++answered;
    if (!report.error.empty()) ++still;
    listing.add(report);
  }
  listing.print();
  call.out.flush();
  if (!call.out.is_json()) {
    call.out.note(counted(asked, "tenant") + " asked, " + in_digits(answered) + " answered, " +
                  in_digits(still) + " with trouble.");
  }
  return still == 0 ? done : failed;
}

int suspend(Invocation& call) {
  Tenants tenants = open_registry(call, {.create = false});
  const Tenant tenant = tenants.suspend(name_of(call), call.arguments.required("--reason"));
  return print_tenant(
      call, tenant,
      "Appends of '" + tenant.name + "' are refused now. Its pending messages are published.");
}

int resume(Invocation& call) {
  const Tenant tenant = open_registry(call, {.create = false}).resume(name_of(call));
  return print_tenant(call, tenant, "'" + tenant.name + "' is active.");
}

int drop(Invocation& call) {
  const std::string text = call.arguments.text("--grace").value_or("7d");
  const auto grace = parse_duration(text);
  if (!grace) throw Misuse{not_a_duration("--grace", text)};
  Tenants tenants = open_registry(call, {.create = false});
  const Tenant tenant = tenants.drop(name_of(call), call.arguments.required("--reason"),
                                     std::chrono::duration_cast<std::chrono::seconds>(*grace));
  return print_tenant(call, tenant,
                      "Appends of '" + tenant.name + "' are refused now. From " +
                          to_string(tenant.erase_from) + " on it can be erased: '" + call.app.name +
                          " tenants erase " + tenant.name + " --confirm " + tenant.name +
                          "'; 'tenants resume' takes it back.");
}

int erase(Invocation& call) {
  const std::string name = name_of(call);
  if (call.arguments.required("--confirm") != name) {
    throw Misuse{"--confirm doesn't repeat the name '" + name + "'; nothing was erased"};
  }
  LogToStderr log{call.settings().text("log") == "json"};
  TenantsOptions options{.create = false};
  options.files.log = &log;
  return print_tenant(
      call, open_registry(call, options).erase(name, call.arguments.has("--lost")),
      "'" + name +
          "' is erased. What the broker has of it stays: remove its stream ('nats stream rm'), or "
          "where tenants share one, its subject ('nats stream purge --subject').");
}

int migrate_all(Invocation& call) {
  const Signals signals{call};
  Tenants tenants = open_registry(call, {.create = false, .migrate = true});
  std::vector<Tenant> all = tenants.list();
  std::erase_if(all, [](const Tenant& one) { return one.state >= TenantState::erasing; });
  ProgressBar bar{call.out, "tenants"};
  std::int64_t migrated = 0;
  std::int64_t still = 0;
  for (const Tenant& tenant : all) {
    if (signals.stopped()) break;
    try {
      make_tables(tenants.use(tenant.name).store());
      ++migrated;
    } catch (const Error& e) {
      ++still;
      call.out.note("tenant '" + tenant.name + "' isn't migrated: " + e.what());
    }
    bar.show("migrating", migrated + still, std::ssize(all));
  }
  bar.clear();
  print_result(call.out, {{"migrated", migrated}, {"failed", still}},
               counted(migrated, "tenant") + " up to date, " + in_digits(still) + " failed.");
  if (signals.stopped()) return interrupted;
  return still == 0 ? done : failed;
}

int adopt(Invocation& call) {
  LogToStderr log{call.settings().text("log") == "json"};
  TenantsOptions options{.create = false};
  options.files.log = &log;
  Tenants tenants = open_registry(call, options);
  const bool takes_over = call.arguments.has("--take-over");
  std::vector<std::string> adopted;
  if (call.arguments.operands().empty()) {
    adopted = tenants.adopt_all(takes_over);
  } else {
    adopted.push_back(tenants.adopt(name_of(call), takes_over).name);
  }
  for (const std::string& name : adopted) {
    const Tenant tenant = *tenants.find(name);
    print_tenant(call, tenant,
                 "'" + name + "' is registered, and " + std::string{to_string(tenant.state)} + '.');
  }
  if (adopted.empty()) call.out.note("Nothing to adopt.");
  return done;
}

/// The child that signals go to.
std::atomic<pid_t> child_of_each{0};

/// Runs this program with other words, and without input. Returns its exit code.
int run_self(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // This process handles signals on a thread, and blocks them elsewhere.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error =
      posix_spawn(&child, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    throw Exit{failed, "starting '" + words.front() + "' failed: " + std::strerror(error)};
  }
  child_of_each = child;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child_of_each = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : failed;
}

int each(Invocation& call) {
  const Signals signals{[] {
    if (const pid_t child = child_of_each; child > 0) kill(child, SIGTERM);
  }};
  Tenants tenants = open_registry(call, {.create = false});
  int worst = done;
  for (const Tenant& tenant : tenants.list()) {
    if (tenant.state >= TenantState::erasing) continue;
    if (signals.stopped()) return interrupted;
    std::vector<std::string> words{call.app.name};
    const auto& given = call.arguments.operands();
    words.insert(words.end(), given.begin(), given.end());
    for (const std::string& word : {std::string{"--tenants"}, call.settings().text("tenants"),
                                    std::string{"--tenant"}, tenant.name}) {
      words.push_back(word);
    }
    if (call.out.is_json()) {
      if (std::find(words.begin(), words.end(), "--json") == words.end()) {
        words.emplace_back("--json");
      }
      call.out.json(to_json({{"tenant", tenant.name}}));
    } else {
      call.out.heading(tenant.name);
    }
    call.out.flush();
    worst = std::max(worst, run_self(words));
  }
  return worst;
}

constexpr Operand tenant_operand{"NAME", "the tenant"};
constexpr Option reason_option{"--reason", "TEXT", "why; must be given"};

std::vector<Command> commands_of_registries() {
  return {
      {.path = "tenants init",
       .summary = "Make a registry of tenants",
       .about =
           "Each tenant has a store of its own. Relative paths begin at the registry's folder.",
       .options = {{"--at", "PATTERN",
                    "where the stores are: data/{tenant}.db, or a postgresql:// URL"},
                   {"--keys-at", "PATTERN",
                    "where the key stores are, for personal fields: keys/{tenant}.keys"}},
       .examples = {{"files", "tenants init --tenants tenants.db --at 'data/{tenant}.db'"},
                    {"schemas of a database",
                     "tenants init --tenants postgresql://app@db/shop --at "
                     "postgresql://app@db/shop"}},
       .run = init},
      {.path = "tenants create",
       .summary = "Make tenants, each with a store",
       .operands = {{"NAME", "a to z, digits, '_' and '-', at most 39", true, true}},
       .examples = {{"two", "tenants create acme globex --tenants tenants.db"}},
       .run = create},
      {.path = "tenants list",
       .summary = "List all tenants with their states",
       .examples = {{"all", "tenants list --tenants tenants.db"}},
       .run = list},
      {.path = "tenants status",
       .summary = "Ask each tenant's store what is pending, behind or broken",
       .about = "Exit code 1 if any has trouble.",
       .examples = {{"all", "tenants status --tenants tenants.db"}},
       .run = status},
      {.path = "tenants migrate",
       .summary = "Migrate the stores of all tenants",
       .about =
           "Programs leave it to this command: else a rolling deployment shuts out older ones.",
       .examples = {{"after a deployment", "tenants migrate --tenants tenants.db"}},
       .run = migrate_all},
      {.path = "tenants adopt",
       .summary = "Register stores that the registry doesn't know",
       .about = "Without a name: all that stand where its stores would, as after the loss of a "
                "registry. With "
                "one: the store at its place, as after an import.",
       .operands = {{"NAME", "the tenant", false}},
       .options = {{"--take-over", "", "also from another registry, which can't use them then"}},
       .examples = {{"after a loss", "tenants adopt --take-over --tenants tenants.db"},
                    {"one that was imported here", "tenants adopt acme --tenants tenants.db"}},
       .run = adopt},
      {.path = "tenants each",
       .summary = "Run a command for each tenant",
       .about =
           "The command is run with --tenants and --tenant, without input. The exit code is the "
           "highest. With --json, a line with the tenant comes before its lines.",
       .operands = {{"COMMAND", "its words; if it has options, after --", true, true}},
       .examples = {{"check all", "tenants each verify --tenants tenants.db"}},
       .run = each},
  };
}

std::vector<Command> commands_of_a_life() {
  return {
      {.path = "tenants suspend",
       .summary = "Refuse a tenant's appends",
       .about =
           "In all processes. Reads work, pending messages are published, projections stand still.",
       .operands = {tenant_operand},
       .options = {reason_option},
       .examples = {{"one", "tenants suspend acme --reason unpaid --tenants tenants.db"}},
       .run = suspend},
      {.path = "tenants resume",
       .summary = "Accept a tenant's appends again",
       .about = "Takes back 'tenants suspend' and 'tenants drop'.",
       .operands = {tenant_operand},
       .examples = {{"one", "tenants resume acme --tenants tenants.db"}},
       .run = resume},
      {.path = "tenants drop",
       .summary = "Refuse a tenant's appends, to erase it after a time of grace",
       .operands = {tenant_operand},
       .options = {reason_option, {"--grace", "TIME", "how long it can't be erased (default 7d)"}},
       .examples = {{"one that left", "tenants drop acme --reason left --tenants tenants.db"}},
       .run = drop},
      {.path = "tenants erase",
       .summary = "Destroy the store and the keys of a dropped tenant",
       .about = "Not before its grace has ended, and only what is its own. What the broker has of "
                "it stays.",
       .operands = {tenant_operand},
       .options = {{"--confirm", "NAME", "the name once more; must be given"},
                   {"--lost", "", "what is missing at its places is gone for good"}},
       .examples = {{"for good", "tenants erase acme --confirm acme --tenants tenants.db"}},
       .run = erase},
  };
}

}  // namespace

std::vector<Command> tenant_commands() {
  std::vector<Command> all = commands_of_registries();
  for (Command& command : commands_of_a_life()) all.push_back(std::move(command));
  return all;
}

}  // namespace stela::tool
