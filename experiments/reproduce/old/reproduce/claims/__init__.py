"""The paper's claims, one line each: what it says, whether it holds here, and the evidence."""
