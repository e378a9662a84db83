#include "cli/invocation.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <unistd.h>

#include <iostream>

namespace stela::tool {

const Settings& Invocation::settings() {
  if (!settings_) settings_ = Settings::load(command.options, arguments);
  return *settings_;
}

DatabasePlace Invocation::place() {
  std::string location = settings().text("db");
  if (location.empty()) location = app.database;
  if (location.empty()) {
    throw Misuse{
        "which database? Say --db FILE or --db URL, set STELA_DB, or write db = \"FILE\" into "
        "stela.toml"};
  }
  return {location, settings()};
}

bool Invocation::confirm_elsewhere(std::string_view question) {
  if (principal == nullptr) return true;
  out.flush();
  return principal->agrees(question);
}

bool Invocation::confirm(std::string_view question) {
  if (arguments.has("--yes")) return true;
  if (principal != nullptr) return confirm_elsewhere(question);
  if (arguments.has("--no-input") || isatty(STDIN_FILENO) != 1 || !out.errors_are_terminal()) {
    throw Misuse{std::string{question}.append(" Not a terminal; pass --yes to confirm")};
  }
  out.flush();
  out.draw(in_one_line(question).append(" [y/N] "));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace stela::tool
