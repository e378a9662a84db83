// The order application: `orders [--db FILE|URL] [--next] COMMAND …`. Other commands are the
// tool's, which knows the application's types.
#include "commands.hpp"
#include "deadline.hpp"
#include "fulfilment.hpp"
#include "read_models.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/privacy.hpp>
#include <stela/tenants.hpp>
#include <stela/tool/run.hpp>

#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr int done = 0;
constexpr int failed = 1;
constexpr int wrong_usage = 2;
constexpr int not_found = 3;

/// The options before the command.
struct Invocation {
  std::string database = "shop.db";
  /// The store of the customers' keys. On a laptop it is beside the database.
  std::string keys;
  /// Runs as the next release of the application.
  bool is_next = false;
  std::vector<std::string> arguments;
};

Invocation parse(std::vector<std::string> arguments) {
  Invocation call;
  if (const char* const file = std::getenv("ORDERS_DB")) call.database = file;
  auto at = arguments.begin();
  for (; at != arguments.end(); ++at) {
    if (*at == "--next") {
      call.is_next = true;
    } else if (*at == "--db" && at + 1 != arguments.end()) {
      call.database = *++at;
    } else {
      break;
    }
  }
  call.arguments.assign(at, arguments.end());
  if (const char* const file = std::getenv("ORDERS_KEYS")) {
    call.keys = file;
  } else {
    call.keys = (stela::is_on_server(call.database) ? "shop.db" : call.database) + ".keys";
  }
  return call;
}

/// The length of a deadline's minute: ORDERS_MINUTE_MS, for demonstrations.
std::chrono::milliseconds minute() {
  const char* const text = std::getenv("ORDERS_MINUTE_MS");
  if (text == nullptr) return std::chrono::minutes{1};
  return std::chrono::milliseconds{orders::number(text, "ORDERS_MINUTE_MS")};
}

void add_projections(stela::Projections& projections, bool is_next) {
  projections.add_inline(orders::StockLevels{});
  projections.add(orders::OpenOrders{});
  if (is_next) {
    projections.add(orders::SalesPerDayV2{});
  } else {
    projections.add(orders::SalesPerDay{});
  }
  projections.add_reaction(orders::Fulfilment{}, {.start = stela::ReactionStart::beginning});
  projections.add_process(orders::PaymentDeadline{minute()});
}

void print_help(std::ostream& out) {
  out << "usage: orders [--db FILE|URL] [--next] COMMAND …\n\n";
  for (const orders::Command& command : orders::commands()) {
    const std::string call = std::string{command.name} + ' ' + std::string{command.arguments};
    out << "  " << std::left << std::setw(52) << call << command.what << '\n';
  }
  out << "\nThe database is shop.db unless --db or ORDERS_DB says otherwise, and the\nkeys of "
         "personal data are beside it in shop.db.keys unless ORDERS_KEYS does. --next is the next "
         "release,\nwith another version of the sales. And all that the tool can do, see "
         "orders tool --help:\norders outbox status, orders events list, orders streams state "
         "order-1001, …\n";
}

int run_tool(const Invocation& call) {
  stela::tool::App app;
  app.name = "orders";
  app.database = call.database;
  app.projections = [&](stela::Projections& projections) {
    add_projections(projections, call.is_next);
  };
  app.aggregate<orders::Order>().aggregate<orders::Stock>();
  std::vector<const char*> arguments{"orders"};
  for (const std::string& argument : call.arguments) {
    if (argument != "tool") arguments.push_back(argument.c_str());
  }
  return stela::tool::run(static_cast<int>(arguments.size()), arguments.data(), app);
}

/// `database` is a file or the URL of a PostgreSQL database. Everything else is the same.
stela::Store open_store(const std::string& database, stela::Keys& keys) {
  if (stela::is_on_server(database)) {
    return stela::postgres::open(database, {.log = &stela::log_to_stderr(), .keys = &keys});
  }
  return stela::sqlite::open(database, {.log = &stela::log_to_stderr(), .keys = &keys});
}

const orders::Command* find_command(const std::string& name) {
  for (const orders::Command& known : orders::commands()) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

int run(const Invocation& call, const orders::Command& command, orders::Application& application) {
  const auto arguments = std::span{call.arguments}.subspan(1);
  // The first argument of every command is a name or a place.
  const bool is_option = !arguments.empty() && arguments[0].starts_with("--");
  if (is_option || arguments.size() < command.least || arguments.size() > command.most) {
    std::cerr << "usage: orders " << command.name << ' ' << command.arguments << '\n';
    return wrong_usage;
  }
  command.run(application, arguments);
  return done;
}

int run(const Invocation& call, const orders::Command& command) {
  stela::Keys keys = stela::open_keys(call.keys);
  stela::Store store = open_store(call.database, keys);
  stela::Outbox outbox{store, {.enable = stela::Enable::backfill}};
  stela::Projections projections{store};
  add_projections(projections, call.is_next);
  orders::Application application{store, outbox, projections};
  return run(call, command, application);
}

/// Every shop of a chain is a tenant: STELA_TENANTS names their registry, and STELA_TENANT the
/// shop.
int run_for_tenants(const Invocation& call, const std::string& registry) {
  stela::TenantsOptions options{.at = "shops/{tenant}.db", .keys = "keys/{tenant}.keys"};
  options.files.log = &stela::log_to_stderr();
  stela::Tenants tenants = stela::open_tenants(registry, options);
  const auto projections_of = [&](stela::Store& store) {
    auto made = std::make_shared<stela::Projections>(store);
    add_projections(*made, call.is_next);
    return made;
  };
  tenants.furnish([&](stela::TenantStore& tenant) {
    tenant.keep<stela::Outbox>();
    tenant.keep_as<stela::Projections>(projections_of);
  });
  if (call.arguments[0] == "work") {
    orders::work_for_all(tenants, call.arguments.at(1),
                         [&](stela::Projections& all) { add_projections(all, call.is_next); });
    return done;
  }
  const orders::Command* const command = find_command(call.arguments[0]);
  const char* const name = std::getenv("STELA_TENANT");
  if (command == nullptr || name == nullptr) return run_tool(call);
  stela::TenantStore tenant = tenants.use(name);
  orders::Application application{tenant.store(), tenant.keep<stela::Outbox>(),
                                  tenant.keep_as<stela::Projections>(projections_of)};
  return run(call, *command, application);
}

int dispatch(const Invocation& call) {
  if (call.arguments.empty()) {
    print_help(std::cerr);
    return wrong_usage;
  }
  if (call.arguments[0] == "--help" || call.arguments[0] == "help") {
    print_help(std::cout);
    return done;
  }
  if (const char* const registry = std::getenv("STELA_TENANTS")) {
    return run_for_tenants(call, registry);
  }
  const orders::Command* const command = find_command(call.arguments[0]);
  return command == nullptr ? run_tool(call) : run(call, *command);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(parse({argv + 1, argv + argc}));
  } catch (const stela::UsageError& e) {
    std::cerr << "orders: " << e.what() << '\n';
    return wrong_usage;
  } catch (const stela::AggregateNotFound& e) {
    std::cerr << "orders: " << e.what() << '\n';
    return not_found;
  } catch (const std::exception& e) {
    std::cerr << "orders: " << e.what() << '\n';
    return failed;
  }
}
