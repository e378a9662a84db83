// The shop's command line: one function for each verb.
#pragma once

#include "shop.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#include <stela/tenants.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace orders {

/// Everything that a command may need, built by `main` on one database.
struct Application {
  stela::Store& store;
  stela::Outbox& outbox;
  stela::Projections& projections;
};

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view what;
  std::size_t least;
  std::size_t most;
  void (*run)(Application& application, std::span<const std::string> arguments);
};

std::span<const Command> commands() noexcept;

// Defined in files of their own.
void show(Application& application, std::span<const std::string> arguments);
void show_at(Application& application, std::span<const std::string> arguments);
void list(Application& application, std::span<const std::string> arguments);
void rebuild(Application& application, std::span<const std::string> arguments);
void work(Application& application, std::span<const std::string> arguments);
void load(Application& application, std::span<const std::string> arguments);
void show_wire(Application& application, std::span<const std::string> arguments);

/// One worker for all shops of a chain. Ends on SIGINT and SIGTERM.
void work_for_all(stela::Tenants& tenants, const std::string& broker,
                  const std::function<void(stela::Projections&)>& set_up);

/// A whole number. UsageError, naming the expected value, for any other text.
std::int64_t number(const std::string& text, std::string_view what);

}  // namespace orders
