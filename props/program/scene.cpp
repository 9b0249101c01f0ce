#include "props/program/scene.h"

#include "model/check.h"

namespace zeroproof::program {
namespace {

Body& body_of_statement(Statement& statement) {
  Body* body = nullptr;
  const auto find = [&](auto& kind) {
    if constexpr (requires { kind.body; }) body = &kind.body;
  };
  std::visit(find, statement.kind);
  ZP_CHECK(body, "a statement around others has a body");
  return *body;
}

}  // namespace

Scene::Scene(Program& program, Source& source, const Policy& policy, Typestate start)
    : program_(program),
      source_(source),
      policy_(policy),
      typestate_(start),
      after_(std::move(start)),
      body_(&program.body),
      engine_(program.engines.front().name) {
  for (const EngineSpec& engine : program.engines)
    traits_[engine.name] = traits_of(program.model_of(engine.name));
}

bool Scene::add(Statement statement) {
  return add_as(std::move(statement), false);
}

bool Scene::add_refused(Statement statement) {
  return add_as(std::move(statement), true);
}

bool Scene::add_as(Statement statement, bool is_refused) {
  if (!policy_.can_do(statement)) return false;
  const auto expectation = typestate_.next(statement, after_);
  if (!expectation || expectation->is_refused() != is_refused) return false;
  if (is_refused && !policy_.can_refuse(*expectation)) return false;
  std::swap(typestate_, after_);
  body_->push_back(std::move(statement));
  return true;
}

bool Scene::is_allowed(const Statement& statement) const {
  const auto expectation = typestate_.expect(statement);
  return expectation && !expectation->is_refused();
}

bool Scene::attempt(const std::function<bool()>& make) {
  const Typestate before = typestate_;
  const std::size_t size = body_->size();
  const auto ahead = ahead_;
  if (make()) return true;
  typestate_ = before;
  body_->resize(size);
  ahead_ = ahead;
  return false;
}

bool Scene::around(Statement outer, const std::function<bool()>& fill) {
  return wrap(std::move(outer), fill, false);
}

bool Scene::around_refused(Statement outer, const std::function<bool()>& fill) {
  return wrap(std::move(outer), fill, true);
}

bool Scene::wrap(Statement outer, const std::function<bool()>& fill, bool is_refused) {
  const Typestate before = typestate_;
  Body* const outer_body = body_;
  Body inner;
  body_ = &inner;
  typestate_ = typestate_.inside(outer);
  const bool is_filled = fill();
  typestate_ = before;
  body_ = outer_body;
  if (!is_filled) return false;
  body_of_statement(outer) = std::move(inner);
  return add_as(std::move(outer), is_refused);
}

Hook Scene::hook(Hook::At at, std::string module, Body body) {
  Hook made;
  made.at = at;
  made.module = std::move(module);
  made.body = std::move(body);
  return made;
}

std::string Scene::new_value() {
  return "g" + std::to_string(++values_);
}

std::string Scene::new_tag() {
  return "t" + std::to_string(++tags_);
}

std::vector<std::string> Scene::engines() const {
  std::vector<std::string> names;
  for (const EngineSpec& engine : program_.engines) names.push_back(engine.name);
  return names;
}

std::optional<Block::Kind> Scene::some_block() const {
  const bool reduces = is_managed_accumulation() && is_boundary();
  if (is_stage(0, 1) && !reduces) return Block::Kind::no_sync;
  if (is_stage(1, 3) && is_managed_accumulation()) return Block::Kind::coalesce;
  return std::nullopt;
}

std::optional<std::string> Scene::other_engine() const {
  for (const EngineSpec& engine : program_.engines)
    if (engine.name != engine_) return engine.name;
  return std::nullopt;
}

}  // namespace zeroproof::program
