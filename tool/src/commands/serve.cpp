// serve: the console.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "console/console.hpp"
#include "console/export_copy.hpp"
#include "description/description.hpp"
#include "http/server.hpp"
#include "store_session.hpp"
#include "tenant_registry.hpp"

#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace stela::tool {
namespace {

constexpr std::string_view standard_address = "127.0.0.1:7410";
constexpr std::size_t most_tenants = 200;
constexpr std::size_t longest_body = std::size_t{64} * 1024;

bool is_name(std::string_view text) {
  const bool begins_well = !text.empty() && text.front() != '.' && text.front() != '-';
  return begins_well && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

/// The name of a file without its extension, or the last part of a server URL's path.
std::string name_of(const std::string& place) {
  std::string name = std::filesystem::path{place.substr(0, place.find('?'))}.stem().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !is_name({&c, 1});
      },
      '-');
  return name.empty() ? "store" : name.substr(0, 64);
}

/// "shop=shop.db" or "shop.db".
ServedStore store_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && is_name(std::string_view{text}.substr(0, equals))) {
    return {text.substr(0, equals), text.substr(equals + 1)};
  }
  return {name_of(text), text};
}

std::string host_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return host.data();
}

std::string user_name() {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? entry.pw_name : std::to_string(getuid());
}

Uuid id_of(Invocation& call, const std::string& place) {
  return DatabasePlace{place, call.settings()}.open_to_read({.is_report = true}).id();
}

/// Sets where operators act. Files are opened for writing, servers as another role.
void let_act(Invocation& call, std::vector<ServedStore>& stores) {
  const bool may_write_files = call.arguments.has("--allow-actions");
  for (ServedStore& store : stores) {
    if (may_write_files && !is_on_server(store.place)) store.acting_place = store.place;
  }
  for (const std::string& text : call.arguments.all("--operate-as")) {
    const ServedStore acting = store_of(text);
    const bool is_named = acting.place != text;
    if (!is_on_server(acting.place)) {
      throw Misuse{"--operate-as names a role on a server; for files say --allow-actions"};
    }
    bool is_found = false;
    for (ServedStore& store : stores) {
      const bool is_any = !is_named && (stores.size() == 1 || !store.tenant.empty());
      if (!is_any && store.name != acting.name) continue;
      // Each action on a tenant looks whether the store is the tenant's.
      if (store.tenant.empty() && id_of(call, store.place) != id_of(call, acting.place)) {
        throw Misuse{"--operate-as leads to another database than '" + store.name + "'"};
      }
      store.acting_place = acting.place;
      is_found = true;
    }
    if (!is_found) {
      throw Misuse{"--operate-as: no database is called '" + acting.name + "': say NAME=URL"};
    }
  }
  const bool may_nowhere = std::all_of(stores.begin(), stores.end(), [](const ServedStore& store) {
    return store.acting_place.empty();
  });
  if (may_write_files && may_nowhere) {
    throw Misuse{"--allow-actions is for files: say --operate-as URL, with a role that may write"};
  }
}

/// The stores of all tenants, for the page's switcher.
std::vector<ServedStore> stores_of_tenants(Invocation& call) {
  TenantsOptions options{.create = false, .most_open = 1};
  options.files.read_only = options.servers.read_only = true;
  Tenants tenants = open_registry(call, options);
  std::vector<ServedStore> stores;
  for (const Tenant& tenant : tenants.list()) {
    if (tenant.state >= TenantState::erasing) continue;
    ServedStore store{
        .name = tenant.name, .place = tenants.place_of(tenant.name), .tenant = tenant.name};
    if (DatabasePlace{store.place, call.settings()}.may_exist()) {
      stores.push_back(std::move(store));
    } else {
      call.out.note("Tenant '" + tenant.name + "' isn't shown: there is no '" + store.place + "'.");
    }
  }
  if (stores.empty() || stores.size() > most_tenants) {
    throw Misuse{"the console shows 1 to " + std::to_string(most_tenants) + " tenants, not " +
                 std::to_string(stores.size()) + "; name some of them by --db"};
  }
  let_act(call, stores);
  return stores;
}

std::vector<ServedStore> stores_of(Invocation& call) {
  if (serves_all_tenants(call)) return stores_of_tenants(call);
  if (const auto& tenant = call.tenant()) {
    std::vector<ServedStore> only{
        {.name = tenant->name, .place = call.settings().text("db"), .tenant = tenant->name}};
    let_act(call, only);
    return only;
  }
  std::vector<std::string> places = call.arguments.all(db_option.name);
  if (places.empty()) places.push_back(call.settings().text("db"));
  if (places.front().empty()) places.front() = call.app.database;
  std::vector<ServedStore> stores;
  for (const std::string& place : places) {
    if (place.empty()) throw Misuse{"which database? Say --db FILE, --db URL or --db NAME=PLACE"};
    stores.push_back(store_of(place));
    const std::string& name = stores.back().name;
    const auto same = std::count_if(stores.begin(), stores.end(),
                                    [&](const ServedStore& one) { return one.name == name; });
    if (same > 1) throw Misuse{"two databases are called '" + name + "': say --db NAME=PLACE"};
  }
  let_act(call, stores);
  return stores;
}

bool is_loopback(const HttpAddress& address) {
  return address.host == "127.0.0.1" || address.host == "::1";
}

/// Any process that can connect to a Unix socket could pose as the proxy, unless there is a secret.
/// With a secret, others in the group may connect too.
HttpAddress address_of(Invocation& call, bool has_proxy_secret) {
  constexpr std::string_view unix_prefix = "unix:";
  const std::string text = call.arguments.text("--listen").value_or(std::string{standard_address});
  if (text == unix_prefix) throw Misuse{"--listen unix:PATH needs a path"};
  if (text.starts_with(unix_prefix)) {
    return {.socket_file = text.substr(unix_prefix.size()),
            .socket_mode = has_proxy_secret ? 0660U : 0600U};
  }
  HttpAddress address = parse_address(text, "the port of --listen");
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

/// If others can connect, somebody must have decided who may.
void check_openness(const HttpAddress& address, const Gate::Options& gate) {
  if (!gate.proxy_field.empty() && gate.people_file.empty()) {
    throw Misuse{"--auth proxy-header says who asks, and not what they may: add --people-file"};
  }
  if (!address.socket_file.empty()) {
    if (!gate.people_file.empty() || !gate.machine_token.empty()) return;
    throw Misuse{
        "no link leads to a file: say who may ask with --people-file and --auth proxy-header=NAME, "
        "or for programs with --token-file"};
  }
  if (!gate.proxy_field.empty() && gate.proxy_secret.empty()) {
    throw Misuse{
        "anybody who connects to a port could say who they are: add --proxy-secret-file, or "
        "listen on unix:PATH"};
  }
  if (is_loopback(address) || !gate.people_file.empty()) return;
  throw Misuse{
      "'" + in_one_line(address.host) +
      "' isn't loopback, and nobody has said who may ask there. Listen on 127.0.0.1, and reach it "
      "from elsewhere by 'ssh -L 7410:127.0.0.1:7410 HOST'; or add --people-file, and a proxy that "
      "speaks TLS (--auth proxy-header=NAME --proxy-secret-file FILE)"};
}

std::string base_path_of(Invocation& call) {
  const std::string path = call.arguments.text("--base-path").value_or("/");
  const bool is_path =
      path.starts_with('/') && path.ends_with('/') &&
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_/") == std::string::npos;
  if (!is_path) throw Misuse{"--base-path begins and ends with '/': /stela/"};
  return path;
}

/// Reads the file's first word.
std::string secret_in(std::string_view option, const std::string& path) {
  std::istringstream in{read_private(option, path)};
  std::string secret;
  in >> secret;
  if (secret.size() < 32) {
    throw Misuse{std::string{option} + ": the secret in '" + path +
                 "' has under 32 characters: 'openssl rand -hex 32' makes one"};
  }
  return secret;
}

/// "proxy-header=Remote-User": the field, in lower case.
std::string proxy_field_in(std::string auth) {
  constexpr std::string_view prefix = "proxy-header=";
  std::transform(auth.begin(), auth.end(), auth.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string field = auth.starts_with(prefix) ? auth.substr(prefix.size()) : std::string{};
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (field.empty() || field.find_first_not_of(allowed) != std::string::npos) {
    throw Misuse{"--auth is 'proxy-header=NAME', with the name of a field: Remote-User"};
  }
  for (const std::string_view taken : {"authorization", "cookie", "host", "stela-proxy-secret"}) {
    if (field == taken) throw Misuse{"--auth: " + field + " says something else: try Remote-User"};
  }
  return field;
}

Gate::Options gate_options(Invocation& call) {
  const Arguments& arguments = call.arguments;
  Gate::Options options{.base_path = base_path_of(call),
                        .people_file = arguments.text("--people-file").value_or(""),
                        .hosts = arguments.all("--host")};
  if (const auto file = arguments.text("--token-file")) {
    options.machine_token = secret_in("--token-file", *file);
  }
  if (const auto auth = arguments.text("--auth")) options.proxy_field = proxy_field_in(*auth);
  if (const auto file = arguments.text("--proxy-secret-file")) {
    if (options.proxy_field.empty()) {
      throw Misuse{"--proxy-secret-file goes with --auth proxy-header=NAME"};
    }
    options.proxy_secret = secret_in("--proxy-secret-file", *file);
    if (options.proxy_secret == options.machine_token) {
      throw Misuse{
          "--proxy-secret-file and --token-file have the same secret: whoever has it is a program, "
          "or the proxy, and not both"};
    }
  }
  return options;
}

void write_port(const std::string& path, std::uint16_t port) {
  std::ofstream out{path, std::ios::trunc};
  out << port << '\n';
  if (!out.flush()) throw Exit{failed, "can't write '" + path + "'"};
}

/// A database that doesn't answer may answer later, but a missing one is a typing error.
void look_for(const Api& api, const std::vector<ServedStore>& stores, Output& out) {
  for (const ServedStore& store : stores) {
    const Api::Answer head = api.ask(store, {.command = "events head"});
    if (head.code == not_found || head.code == usage) {
      throw Exit{static_cast<ExitCode>(head.code), head.kept.error};
    }
    if (head.code != done) out.note(store.name + " doesn't answer yet: " + head.kept.error);
  }
}

/// Exit, with the import's own sentence, if it fails.
void run_well(const ConsoleCommands& commands, const ServedStore& store, const CommandCall& call,
              Output::Kept& kept) {
  Output out{{.json = true, .no_color = true, .kept = &kept}};
  const Principal nobody_asked{"export", [](std::string_view) { return true; }, {}};
  const int code = commands.run(commands.find(call.command), commands.arguments(store, call), out,
                                Invocation::Access::writes, &nobody_asked);
  if (code != done) throw Exit{static_cast<ExitCode>(code), kept.error};
}

/// The part of an import's sentence that is about the file, because there is no store to continue
/// with.
std::string of_file(const std::string& path, std::string_view sentence) {
  for (const std::string_view end : {"; the store", "; nothing is imported"}) {
    sentence = sentence.substr(0, sentence.find(end));
  }
  return "'" + path + "' isn't a whole export: " + std::string{sentence};
}

/// The database made from an export. Operators can't act on it.
ServedStore imported(Invocation& call, const ConsoleCommands& commands, const ExportCopy& copy) {
  for (const std::string_view option : {"--db", "--nats", "--allow-actions", "--operate-as"}) {
    if (!call.arguments.has(option)) continue;
    throw Misuse{"--export is looked at alone: leave " + std::string{option} + " out"};
  }
  if (call.settings().is_set("nats.url")) {
    throw Misuse{"--export is looked at without a broker: leave nats.url out of the settings"};
  }
  const std::string path = *call.arguments.text("--export");
  ServedStore store{.name = name_of(path), .place = copy.file()};
  Output::Kept ignored;
  run_well(commands, store, {.command = "migrate"}, ignored);
  try {
    run_well(commands, store, {.command = "import", .operands = {path}}, ignored);
  } catch (const Exit& e) {
    if (e.code() != failed) throw;
    throw Exit{failed, of_file(path, e.what())};
  }
  // An import holds timers for the drivers of the old store, but nobody drives this one.
  run_well(commands, store, {.command = "timers resume"}, ignored);
  Output::Kept last;
  run_well(commands, store,
           {.command = "events list", .options = {{"newest-first", ""}, {"limit", "1"}}}, last);
  constexpr std::string_view key = "\"recorded_at\":\"";
  const std::size_t at = last.out.find(key);
  if (at == std::string::npos) throw Exit{failed, "'" + path + "' has no event"};
  const std::size_t begin = at + key.size();
  store.exported_at = last.out.substr(begin, last.out.find('"', begin) - begin);
  store.exported_in = std::filesystem::path{path}.filename().string();
  return store;
}

void print_link(Output& out, std::string_view link) {
  if (out.is_json()) {
    out.json(to_json({{"link", link}}));
  } else {
    out.line(link);
  }
  out.flush();
}

/// Wakes a thread that waits for the terminal.
class Bell {
 public:
  Bell() : file_{eventfd(0, EFD_CLOEXEC)} {}
  ~Bell() { close(file_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { eventfd_write(file_, 1); }
  int file() const noexcept { return file_; }

 private:
  int file_;
};

/// True if Enter was pressed, false if it was told to end.
bool wait_for_enter(const Bell& bell, bool& has_terminal) {
  std::array<pollfd, 2> files{{{bell.file(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (true) {
    if (poll(files.data(), has_terminal ? 2 : 1, -1) < 0) continue;
    if ((files[0].revents & POLLIN) != 0) return false;
    std::array<char, 256> text;
    has_terminal = read(STDIN_FILENO, text.data(), text.size()) > 0;
    if (has_terminal) return true;
  }
}

int serve(Invocation& call) {
  Bell bell;
  const Signals signals{[&bell] { bell.ring(); }};
  const ConsoleCommands commands{call.app, call.commands, call.arguments};
  Gate::Options gate = gate_options(call);
  const HttpAddress address = address_of(call, !gate.proxy_secret.empty());
  check_openness(address, gate);
  const bool is_file = !address.socket_file.empty();
  gate.user = user_name();
  gate.has_links = !is_file && is_loopback(address) && gate.proxy_field.empty();
  if (!is_file && !is_loopback(address)) {
    gate.hosts.push_back(address.host + ":" + std::to_string(address.port));
  }
  std::optional<ExportCopy> copy;
  if (call.arguments.has("--export")) copy.emplace();
  Console::Options options{
      .stores = copy ? std::vector{imported(call, commands, *copy)} : stores_of(call),
      .gate = gate,
      .environment = call.arguments.text("--environment").value_or(""),
      .web_root = call.arguments.text("--web-root").value_or(""),
      .asks_broker = call.settings().is_set("nats.url"),
      .user = gate.user,
      .host = host_name()};
  look_for(Api{commands}, options.stores, call.out);
  const std::size_t lanes = options.stores.size();
  Console console{commands, call.app, std::move(options)};
  const HttpServer server{
      address,
      {.at_once = [&](const HttpRequest& request) { return console.answer_at_once(request); },
       .in_time = [&](const HttpRequest& request) { return console.answer(request); },
       .lane = [&](const HttpRequest& request) { return console.lane(request); }},
      {.connections = 256,
       .lanes = lanes,
       .waiting = 64,
       .makers = 4,
       .body = longest_body,
       .requests = 100}};
  if (const auto file = call.arguments.text("--port-file")) write_port(*file, server.port());
  bool has_terminal = gate.has_links && isatty(STDIN_FILENO) == 1;
  if (gate.has_links) {
    call.out.note(std::string{"Open this link within five minutes; it is good once."} +
                  (has_terminal ? " Enter makes another, Ctrl-C ends." : ""));
  }
  do {
    print_link(call.out, server.url() + (gate.has_links ? console.new_link()
                                         : is_file      ? ""
                                                        : gate.base_path));
  } while (wait_for_enter(bell, has_terminal));
  return done;
}

}  // namespace

Command serve_command() {
  return {
      .path = "serve",
      .summary = "Show databases in a browser",
      .about =
          "The console: a page on this host that shows what a database, its outbox, followers and "
          "timers do, and why something stands still. It only reads, unless it may act. The link "
          "that "
          "it prints opens one session. From another host: 'ssh -L 7410:127.0.0.1:7410 HOST'.",
      .options =
          {{"--db", "[NAME=]PLACE", "a database, a file or URL; again for another", "", true},
           {"--export", "FILE", "in place of a database, what 'export' wrote"},
           {"--nats", "URL", "also ask this broker", "nats.url"},
           jetstream_option,
           prefix_option,
           {"--listen", "ADDRESS",
            "[HOST:]PORT or unix:PATH; 127.0.0.1:7410 unless said otherwise"},
           {"--port-file", "FILE", "write the port there once it listens"},
           {"--token-file", "FILE", "programs may ask with this token, as 'Authorization: Bearer'"},
           {"--people-file", "FILE", "who may do what: lines of NAME GRANTS SHA256-OF-TOKEN"},
           {"--auth", "proxy-header=NAME", "a proxy says in this field who asks"},
           {"--proxy-secret-file", "FILE", "what the proxy sends along as Stela-Proxy-Secret"},
           {"--host", "NAME", "also answer to this name, as the browser has it", "", true},
           {"--base-path", "PATH", "the path that a proxy has for it: /stela/"},
           {"--allow-actions", "", "let those with a session act on files: retry, discard, resume"},
           {"--operate-as", "[NAME=]URL", "let them act on a server, as this role", "", true},
           {"--environment", "NAME", "what the page calls it: production"},
           {"--web-root", "DIR", "serve the page from here, for those who change it"}},
      .examples = {{"look at a shop", "serve --db shop.db --nats nats://127.0.0.1:4222"},
                   {"two databases", "serve --db eu=eu.db --db us=us.db"},
                   {"all tenants", "serve --tenants tenants.db"}},
      .run = serve};
}

}  // namespace stela::tool
