"""The operators' pages at /dashboard: server-rendered, readable without JavaScript, behind a sign-in of their own."""
