// serve: the console.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "console/console.hpp"
#include "description/description.hpp"
#include "http/server.hpp"
#include "store_session.hpp"

#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace stela::tool {
namespace {

constexpr std::string_view standard_address = "127.0.0.1:7410";
constexpr std::size_t longest_body = std::size_t{64} * 1024;

bool is_name(std::string_view text) {
  const bool begins_well = !text.empty() && text.front() != '.' && text.front() != '-';
  return begins_well && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

/// Of a file its name without an ending, of a server's database the last part of its path.
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

std::string operator_name() {
  std::array<char, 256> host{};
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  const std::string user = found != nullptr ? entry.pw_name : std::to_string(getuid());
  return user + "@" + host.data() + " (console)";
}

Uuid id_of(Invocation& call, const std::string& place) {
  return DatabasePlace{place, call.settings()}.open_to_read({.is_report = true}).id();
}

/// Where operators act. Files are opened to be written, servers as another role.
void let_act(Invocation& call, std::vector<ServedStore>& stores) {
  const bool may_write_files = call.arguments.has("--allow-actions");
  for (ServedStore& store : stores) {
    if (may_write_files && !is_on_server(store.place)) store.acting_place = store.place;
  }
  for (const std::string& text : call.arguments.all("--operate-as")) {
    const ServedStore acting = store_of(text);
    const bool is_named = acting.place != text;
    const auto found = std::find_if(stores.begin(), stores.end(), [&](const ServedStore& store) {
      return store.name == acting.name || (!is_named && stores.size() == 1);
    });
    if (found == stores.end()) {
      throw Misuse{"--operate-as: no database is called '" + acting.name + "': say NAME=URL"};
    }
    if (!is_on_server(acting.place)) {
      throw Misuse{"--operate-as names a role on a server; for files say --allow-actions"};
    }
    if (id_of(call, found->place) != id_of(call, acting.place)) {
      throw Misuse{"--operate-as leads to another database than '" + found->name + "'"};
    }
    found->acting_place = acting.place;
  }
  const bool may_nowhere = std::all_of(stores.begin(), stores.end(), [](const ServedStore& store) {
    return store.acting_place.empty();
  });
  if (may_write_files && may_nowhere) {
    throw Misuse{"--allow-actions is for files: say --operate-as URL, with a role that may write"};
  }
}

std::vector<ServedStore> stores_of(Invocation& call) {
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

HttpAddress loopback_address(Invocation& call) {
  const std::string text = call.arguments.text("--listen").value_or(std::string{standard_address});
  HttpAddress address = parse_address(text, "the port of --listen");
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (address.host != "127.0.0.1" && address.host != "::1") {
    throw Misuse{
        "'" + in_one_line(address.host) +
        "' isn't loopback, and the console speaks no TLS: listen on 127.0.0.1, and reach it "
        "from elsewhere by 'ssh -L 7410:127.0.0.1:7410 HOST'"};
  }
  return address;
}

std::string base_path_of(Invocation& call) {
  const std::string path = call.arguments.text("--base-path").value_or("/");
  const bool is_path =
      path.starts_with('/') && path.ends_with('/') &&
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_/") == std::string::npos;
  if (!is_path) throw Misuse{"--base-path begins and ends with '/': /stela/"};
  return path;
}

/// Of programs that ask with it.
std::string token_in(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw Misuse{"--token-file: can't read '" + path + "'"};
  if ((status.st_mode & 077U) != 0) {
    throw Misuse{"others may read '" + path + "': chmod 600 " + path};
  }
  std::ifstream in{path};
  std::string token;
  in >> token;
  if (token.size() < 32) {
    throw Misuse{"the token in '" + path +
                 "' has under 32 characters: 'openssl rand -hex 32' makes one"};
  }
  return token;
}

void write_port(const std::string& path, std::uint16_t port) {
  std::ofstream out{path, std::ios::trunc};
  out << port << '\n';
  if (!out.flush()) throw Exit{failed, "can't write '" + path + "'"};
}

/// A database that doesn't answer may answer later; one that isn't there is a typing error.
void look_for(const Api& api, const std::vector<ServedStore>& stores, Output& out) {
  for (const ServedStore& store : stores) {
    const Api::Answer head = api.ask(store, {.command = "events head"});
    if (head.code == not_found || head.code == usage) {
      throw Exit{static_cast<ExitCode>(head.code), head.kept.error};
    }
    if (head.code != done) out.note(store.name + " doesn't answer yet: " + head.kept.error);
  }
}

void print_link(Output& out, std::string_view link) {
  if (out.is_json()) {
    out.json(to_json({{"link", link}}));
  } else {
    out.line(link);
  }
  out.flush();
}

/// Wakes whoever waits for a terminal.
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
  Console::Options options{.stores = stores_of(call),
                           .base_path = base_path_of(call),
                           .environment = call.arguments.text("--environment").value_or(""),
                           .web_root = call.arguments.text("--web-root").value_or(""),
                           .asks_broker = call.settings().is_set("nats.url"),
                           .who = operator_name()};
  if (const auto file = call.arguments.text("--token-file"))
    options.machine_token = token_in(*file);
  look_for(Api{commands}, options.stores, call.out);
  const std::size_t lanes = options.stores.size();
  Console console{commands, call.app, std::move(options)};
  const HttpServer server{
      loopback_address(call),
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
  bool has_terminal = isatty(STDIN_FILENO) == 1;
  call.out.note(std::string{"Open this link within five minutes; it is good once."} +
                (has_terminal ? " Enter makes another, Ctrl-C ends." : ""));
  do {
    print_link(call.out, server.url() + console.new_link());
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
           {"--nats", "URL", "also ask this broker", "nats.url"},
           jetstream_option,
           prefix_option,
           {"--listen", "[HOST:]PORT", "where on loopback; 127.0.0.1:7410 unless said otherwise"},
           {"--port-file", "FILE", "write the port there once it listens"},
           {"--token-file", "FILE", "programs may ask with this token, as 'Authorization: Bearer'"},
           {"--base-path", "PATH", "the path that a proxy has for it: /stela/"},
           {"--allow-actions", "", "let those with a session act on files: retry, discard, resume"},
           {"--operate-as", "[NAME=]URL", "let them act on a server, as this role", "", true},
           {"--environment", "NAME", "what the page calls it: production"},
           {"--web-root", "DIR", "serve the page from here, for those who change it"}},
      .examples = {{"look at a shop", "serve --db shop.db --nats nats://127.0.0.1:4222"},
                   {"two databases", "serve --db eu=eu.db --db us=us.db"}},
      .run = serve};
}

}  // namespace stela::tool
