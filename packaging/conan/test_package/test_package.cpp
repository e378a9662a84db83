// Stores an event in memory and reads it.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>

#include <iostream>

int main() {
  auto store = stela::sqlite::open_in_memory();
  const stela::NewEvent event{"account.opened", 1, false, "{}"};
  const auto account = stela::StreamId::parse("account-1");
  const stela::StreamAppend append{account, stela::ExpectedVersion::any(), {&event, 1}};
  store.append({.streams = {&append, 1}});
  std::cout << "stela " << stela::version() << ": " << store.last_sequence().value() << " event\n";
}
