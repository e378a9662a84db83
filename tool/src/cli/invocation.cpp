#include "cli/invocation.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "tenant_registry.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <iostream>

namespace stela::tool {

const Settings& Invocation::settings() {
  if (settings_) return *settings_;
  settings_ = Settings::load(command.options, arguments);
  const bool is_about_all = command.path.starts_with("tenants ");
  if (is_about_all && arguments.has("--tenant")) {
    throw Misuse{"'" + std::string{command.path} + "' takes the tenant's name as a word"};
  }
  if (!is_about_all && !settings_->text("tenant").empty()) {
    tenant_ = settle_tenant(*settings_, arguments);
  }
  return *settings_;
}

DatabasePlace Invocation::place() {
  std::string location = settings().text("db");
  if (location.empty()) location = app.database;
  if (location.empty()) {
    throw Misuse{
        "which database? Say --db FILE or --db URL, or --tenant NAME, set STELA_DB, or write db = "
        "\"FILE\" into "
        "stela.toml"};
  }
  return {location, settings()};
}

std::string Invocation::operator_name() const {
  if (principal != nullptr) return principal->who;
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  std::string name = found != nullptr ? entry.pw_name : "uid " + std::to_string(getuid());
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) name.append("@").append(host.data());
  return name;
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
