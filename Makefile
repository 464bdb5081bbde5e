# Everything a clone needs is Python >= 3.11 and make; each target builds .venv on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo docs test test-peers lint bench results clean

demo: .venv/core
	$(BIN)/dpcate demo --out demo

docs: .venv/dev
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --conf-dir docs --builder html . site

test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "fork and not peers"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not fork and not peers" -n 2

test-peers: .venv/peers
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m peers

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/peers
	$(BIN)/dpcate bench speed

results: .venv/peers
	$(BIN)/dpcate bench paper --out docs/results/paper
	$(BIN)/dpcate bench peers --out docs/results/peers

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv/peers: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev,peers]'
	touch $@

clean:
	rm -rf .venv demo artifacts site
