// The order application: `orders [--db FILE] COMMAND …`.
#include "commands.hpp"
#include "fulfilment.hpp"
#include "read_models.hpp"

#include <algorithm>
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

void print_help(std::ostream& out) {
  out << "usage: orders [--db FILE] COMMAND …\n\n";
  for (const orders::Command& command : orders::commands()) {
    const std::string call = std::string{command.name} + ' ' + std::string{command.arguments};
    out << "  " << std::left << std::setw(52) << call << command.what << '\n';
  }
  out << "\nThe database is shop.db unless --db or ORDERS_DB says otherwise.\n";
}

/// Takes `--db FILE` out of the arguments.
std::string database(std::vector<std::string>& arguments) {
  const char* const environment = std::getenv("ORDERS_DB");
  std::string file = environment != nullptr ? environment : "shop.db";
  if (arguments.size() > 1 && arguments[0] == "--db") {
    file = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  return file;
}

int run(const std::string& file, const orders::Command& command,
        std::span<const std::string> arguments) {
  if (arguments.size() < command.least || arguments.size() > command.most) {
    std::cerr << "usage: orders " << command.name << ' ' << command.arguments << '\n';
    return wrong_usage;
  }
  auto store = stela::sqlite::open(file);
  stela::Outbox outbox{store, {.enable = stela::Enable::from_now}};
  stela::Projections projections{store};
  projections.add_inline(orders::StockLevels{});
  projections.add(orders::OpenOrders{});
  projections.add(orders::SalesPerDay{});
  projections.add_reaction(orders::Fulfilment{}, {.start = stela::Start::beginning});
  orders::Application application{store, outbox, projections};
  command.run(application, arguments);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments{argv + 1, argv + argc};
  try {
    const std::string file = database(arguments);
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "help") {
      print_help(arguments.empty() ? std::cerr : std::cout);
      return arguments.empty() ? wrong_usage : done;
    }
    const auto all = orders::commands();
    const auto command = std::find_if(
        all.begin(), all.end(), [&](const auto& known) { return known.name == arguments[0]; });
    if (command == all.end()) {
      std::cerr << "orders: there is no command '" << arguments[0] << "'; see orders --help\n";
      return wrong_usage;
    }
    return run(file, *command, std::span{arguments}.subspan(1));
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
